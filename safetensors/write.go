package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// Tensor is one tensor of a file that is written.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64
	Data  []byte // little-endian, as many bytes as type and shape have
}

// Marshal is a file of these tensors, in their order, as MLX marks its own. The header ends on a border of 8 bytes.
func Marshal(tensors []Tensor) []byte {
	var header bytes.Buffer
	header.WriteString(`{"__metadata__":{"format":"mlx"}`)
	at := int64(0)
	for _, t := range tensors {
		entry, err := json.Marshal(struct {
			DType   DType    `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, t.Shape, [2]int64{at, at + int64(len(t.Data))}})
		name, nameErr := json.Marshal(t.Name)
		if err != nil || nameErr != nil {
			panic("safetensors: a header that cannot be written")
		}
		header.WriteByte(',')
		header.Write(name)
		header.WriteByte(':')
		header.Write(entry)
		at += int64(len(t.Data))
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	out := make([]byte, 0, 8+int64(header.Len())+at)
	out = binary.LittleEndian.AppendUint64(out, uint64(header.Len()))
	out = append(out, header.Bytes()...)
	for _, t := range tensors {
		out = append(out, t.Data...)
	}
	return out
}
