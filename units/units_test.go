package units

import "testing"

func TestSizesAreReadInEveryUsualSpelling(t *testing.T) {
	for text, want := range map[string]int64{
		"1000000": 1e6, "500kB": 5e5, "500KB": 5e5, "20M": 2e7, "20MB": 2e7, "12GB": 12e9, "12 GB": 12e9,
		"1.5GB": 15e8, "12GiB": 12 << 30, "0.5GiB": 1 << 29, "7B": 7,
	} {
		if got, ok := ParseBytes(text); !ok || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, ok, want)
		}
	}
}

func TestTextThatIsNoSizeIsRefused(t *testing.T) {
	for _, text := range []string{"", "0", "1", "12", "999999", "-1", "-5GB", "GB", "12GB/s", "12 Gigabytes", "1e9",
		"1.2.3", "NaN", "inf",
		"1TiB", "99999999999999999999"} {
		if got, ok := ParseBytes(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
	if got, ok := ParseRate("20MB/s"); !ok || got != 2e7 {
		t.Errorf("a rate of 20MB/s is %d, %v", got, ok)
	}
}

func TestSizesAndCountsAreWrittenInOneWay(t *testing.T) {
	for want, got := range map[string]string{
		"27.0 GiB": GiB(27 << 30), "135 MiB": GiB(135 << 20), "27.9 GiB (30.0 GB)": GiBAndGB(30e9),
		"0 bytes": Short(0), "1.00 kB": Short(1000), "1.00 MB": Short(999_900),
		"31.2 MB": Short(31_240_000), "16.0 GB": Short(16e9), "5.98 GB": Short(5_980_000_000), "412 GB": Short(412e9),
		"1023 B": Binary(1023), "512.0 MiB": Binary(512 << 20), "2.0 GiB": Binary(2 << 30),
		"3.1GB": AtLeast(3_061_200_000), "6GB": AtLeast(5_980_000_000), "16GB": AtLeast(15_970_000_000),
		"17GB": AtLeast(16_000_000_001), "9.6MB": AtLeast(9_530_001), "1GB": AtLeast(1e9), "0.2kB": AtLeast(200),
		"0": Count(0), "999": Count(999), "262,144": Count(262144), "-1,000": Count(-1000),
	} {
		if got != want {
			t.Errorf("written %q, want %q", got, want)
		}
	}
}
