package needle

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"slices"
	"strings"

	"slipway/checks/record"
)

// Map is the share of codes found by depth (rows, the beginning of the document first) and length (columns).
type Map struct {
	Lengths []int
	Rows    int
	Hits    [][]int // row, column
	Of      [][]int
}

// MapOf sorts the codes of all answers into the rows.
func MapOf(answers []record.Answer, rows int) Map {
	m := Map{Rows: rows}
	for _, a := range answers {
		for _, p := range a.Parts {
			if !slices.Contains(m.Lengths, p.Length) {
				m.Lengths = append(m.Lengths, p.Length)
			}
		}
	}
	slices.Sort(m.Lengths)
	for range rows {
		m.Hits, m.Of = append(m.Hits, make([]int, len(m.Lengths))), append(m.Of, make([]int, len(m.Lengths)))
	}
	for _, a := range answers {
		for _, p := range a.Parts {
			row, column := min(rows-1, int(p.Depth*float64(rows))), slices.Index(m.Lengths, p.Length)
			m.Of[row][column]++
			if p.Hit {
				m.Hits[row][column]++
			}
		}
	}
	return m
}

// Text is the map for a terminal: numbers, no colours.
func (m Map) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%12s", "depth")
	for _, l := range m.Lengths {
		fmt.Fprintf(&b, "%9d", l)
	}
	b.WriteString("  tokens\n")
	for row := range m.Rows {
		fmt.Fprintf(&b, "%12s", fmt.Sprintf("%d-%d %%", row*100/m.Rows, (row+1)*100/m.Rows))
		for column := range m.Lengths {
			if of := m.Of[row][column]; of == 0 {
				fmt.Fprintf(&b, "%9s", "-")
			} else {
				fmt.Fprintf(&b, "%9s", fmt.Sprintf("%d/%d", m.Hits[row][column], of))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Sizes of the picture, in pixels.
const (
	cellWidth, cellHeight = 72, 32
	leftWidth, topHeight  = 64, 32
	dot                   = 2 // of a digit
)

// PNG is the map as a picture: from dark (none found) to light (all found), the share in percent in each field.
func (m Map) PNG() []byte {
	picture := image.NewRGBA(image.Rect(0, 0, leftWidth+cellWidth*len(m.Lengths)+8, topHeight+cellHeight*m.Rows+8))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	for column, l := range m.Lengths {
		write(picture, leftWidth+column*cellWidth+4, 10, fmt.Sprint(l), color.Black)
	}
	for row := range m.Rows {
		write(picture, 4, topHeight+row*cellHeight+11, fmt.Sprintf("%d-%d%%", row*100/m.Rows, (row+1)*100/m.Rows),
			color.Black)
		for column := range m.Lengths {
			x, y := leftWidth+column*cellWidth, topHeight+row*cellHeight
			cell := image.Rect(x, y, x+cellWidth-2, y+cellHeight-2)
			of := m.Of[row][column]
			if of == 0 {
				draw.Draw(picture, cell, image.NewUniform(color.Gray{0xdd}), image.Point{}, draw.Src)
				continue
			}
			share := float64(m.Hits[row][column]) / float64(of)
			draw.Draw(picture, cell, image.NewUniform(shade(share)), image.Point{}, draw.Src)
			ink := color.Color(color.Black)
			if share < 0.6 {
				ink = color.White
			}
			write(picture, x+8, y+10, fmt.Sprintf("%d%%", int(share*100+0.5)), ink)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		panic(err) // memory
	}
	return b.Bytes()
}

// shade runs from dark blue over green to yellow, readable without colours too: light is good.
func shade(share float64) color.Color {
	stops := [][3]float64{{48, 18, 92}, {33, 145, 140}, {253, 231, 37}}
	at := share * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	mix := func(c int) uint8 { return uint8(stops[i][c] + (stops[i+1][c]-stops[i][c])*(at-float64(i))) }
	return color.RGBA{mix(0), mix(1), mix(2), 255}
}

// glyphs are three dots wide and five high, a row a digit in octal.
var glyphs = map[rune][5]uint8{
	'0': {7, 5, 5, 5, 7}, '1': {2, 6, 2, 2, 7}, '2': {7, 1, 7, 4, 7}, '3': {7, 1, 7, 1, 7}, '4': {5, 5, 7, 1, 1},
	'5': {7, 4, 7, 1, 7},
	'6': {7, 4, 7, 5, 7}, '7': {7, 1, 1, 1, 1}, '8': {7, 5, 7, 5, 7}, '9': {7, 5, 7, 1, 7}, '%': {5, 1, 2, 4, 5},
	'-': {0, 0, 7, 0, 0},
}

func write(picture *image.RGBA, x, y int, text string, ink color.Color) {
	for _, c := range text {
		for row, bits := range glyphs[c] {
			for column := range 3 {
				if bits&(4>>column) != 0 {
					at := image.Rect(x+column*dot, y+row*dot, x+(column+1)*dot, y+(row+1)*dot)
					draw.Draw(picture, at, image.NewUniform(ink), image.Point{}, draw.Src)
				}
			}
		}
		x += 4 * dot
	}
}
