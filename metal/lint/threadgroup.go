package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// threadgroupBytes is the threadgroup memory of each Apple GPU.
const threadgroupBytes = 32 << 10

var (
	reKernel     = regexp.MustCompile(`(?m)^(?:template <(?:uint|typename) (\w+)>\s*\n)?kernel void (\w+)\(`)
	reInstance   = regexp.MustCompile(`kernel void (\w+)<(\w+)>\(`)
	reConstexpr  = regexp.MustCompile(`constexpr uint (\w+) = ([^;]+);`)
	reShared     = regexp.MustCompile(`(?m)^[ \t]+threadgroup\s+(\w+)\s+(\w+)((?:\s*\[[^\]\n]+\])*)\s*;`)
	reDimensions = regexp.MustCompile(`\[([^\]]+)\]`)
)

var typeBytes = map[string]int{
	"bool": 1, "uchar": 1, "half": 2, "bfloat": 2, "ushort": 2, "float": 4, "int": 4, "uint": 4, "atomic_uint": 4,
	"ulong": 8,
	"half2": 4, "half4": 8, "float2": 8, "uint2": 8, "float3": 16, "float4": 16, "uint4": 16,
}

// threadgroupMemory reports the declaration with which a kernel, or an instance of its template, is beyond 32 KiB of
// threadgroup memory.
func threadgroupMemory(name, code string) (found []Finding) {
	instances := map[string][]string{}
	for _, m := range reInstance.FindAllStringSubmatch(code, -1) {
		instances[m[1]] = append(instances[m[1]], m[2])
	}
	for _, m := range reKernel.FindAllStringSubmatchIndex(code, -1) {
		parameter, function := "", code[m[4]:m[5]]
		if m[2] >= 0 {
			parameter = code[m[2]:m[3]]
		}
		arguments := instances[function]
		if parameter == "" {
			arguments = []string{""}
		}
		body := code[m[1]:]
		if end := strings.Index(body, "\n}"); end >= 0 {
			body = body[:end]
		}
		values := map[string]string{}
		for _, c := range reConstexpr.FindAllStringSubmatch(code[:m[1]]+body, -1) {
			values[c[1]] = c[2]
		}
		reported := map[int]bool{}
		for _, argument := range arguments {
			values[parameter] = argument
			total, beyond := 0, false
			for _, d := range reShared.FindAllStringSubmatchIndex(body, -1) {
				n, err := sharedBytes(body[d[2]:d[3]], body[d[6]:d[7]], values)
				total += n
				if err == nil && (beyond || total <= threadgroupBytes) || reported[d[0]] {
					continue
				}
				beyond, reported[d[0]] = err == nil, true
				file, line := place(name, code, m[1]+d[2])
				what := fmt.Sprintf("%s has %d bytes of threadgroup memory with %s, a GPU 32,768",
					instance(function, argument), total, body[d[4]:d[5]])
				if err != nil {
					what = fmt.Sprintf("the size of %s cannot be computed: %v", body[d[4]:d[5]], err)
				}
				found = append(found, Finding{file, line, what})
			}
		}
	}
	return found
}

func instance(function, argument string) string {
	if argument == "" {
		return function
	}
	return function + "<" + argument + ">"
}

// sharedBytes is the size of a type with dimensions such as "[2][8 * D]". values are the constants' expressions, and a
// template's argument.
func sharedBytes(kind, dimensions string, values map[string]string) (int, error) {
	if values[kind] != "" {
		kind = values[kind]
	}
	n := typeBytes[kind]
	if n == 0 {
		return 0, fmt.Errorf("nothing says how large %s is", kind)
	}
	for _, d := range reDimensions.FindAllStringSubmatch(dimensions, -1) {
		size, err := number(d[1], values, 0)
		if err != nil {
			return 0, err
		}
		n *= size
	}
	return n, nil
}

// number computes a whole number. Names are looked up in values, to a depth that no file needs.
func number(expression string, values map[string]string, depth int) (int, error) {
	parsed, err := parser.ParseExpr(expression)
	if err != nil || depth > 16 {
		return 0, fmt.Errorf("%q is no sum or product of constants", expression)
	}
	var of func(e ast.Expr) (int, error)
	of = func(e ast.Expr) (int, error) {
		switch e := e.(type) {
		case *ast.ParenExpr:
			return of(e.X)
		case *ast.BasicLit:
			return strconv.Atoi(e.Value)
		case *ast.Ident:
			return number(values[e.Name], values, depth+1)
		case *ast.BinaryExpr:
			x, err := of(e.X)
			if err != nil {
				return 0, err
			}
			y, err := of(e.Y)
			if err != nil {
				return 0, err
			}
			switch {
			case e.Op == token.ADD:
				return x + y, nil
			case e.Op == token.SUB:
				return x - y, nil
			case e.Op == token.MUL:
				return x * y, nil
			case e.Op == token.QUO && y != 0:
				return x / y, nil
			}
		}
		return 0, fmt.Errorf("%q is no sum or product of constants", expression)
	}
	return of(parsed)
}
