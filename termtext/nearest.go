package termtext

// Nearest is the name that differs from typed in the fewest letters, of those that differ in no more than a third of
// them and at least one; the first of several. "" when none is so near.
func Nearest(typed string, names []string) string {
	nearest, fewest := "", max(1, len([]rune(typed))/3)+1
	for _, name := range names {
		if d := distance([]rune(typed), []rune(name)); d < fewest {
			nearest, fewest = name, d
		}
	}
	return nearest
}

// distance is how many letters have to be put in, taken out, replaced or exchanged with the next one to turn a into b
// (optimal string alignment).
func distance(a, b []rune) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range b {
		d[0][j+1] = j + 1
	}
	for i := range a {
		for j := range b {
			replaced := d[i][j]
			if a[i] != b[j] {
				replaced++
			}
			d[i+1][j+1] = min(replaced, d[i][j+1]+1, d[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d[i+1][j+1] = min(d[i+1][j+1], d[i-1][j-1]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
