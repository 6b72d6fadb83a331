// Compares the vectors of two sentences, in Go:
//
//	export CGO_CFLAGS="-I$PWD/include" CGO_LDFLAGS="-L$PWD/build/release -lphasor_c"
//	LD_LIBRARY_PATH=build/release PHASOR_MODELS=models go run examples/encode.go
package main

// #include <phasor/phasor_c.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

func check(status C.phasor_status) {
	if status != C.PHASOR_OK {
		panic(C.GoString(C.phasor_error_message()))
	}
}

func main() {
	runtime.LockOSThread() // an error's message belongs to its thread
	var model *C.phasor_model
	var encoder *C.phasor_encoder
	name := C.CString("sinusoidal")
	defer C.free(unsafe.Pointer(name))
	check(C.phasor_model_load(name, nil, &model))
	defer C.phasor_model_free(model)
	check(C.phasor_encoder_create(model, nil, &encoder))
	defer C.phasor_encoder_free(encoder)

	a, b := embed(encoder, "Tom bit a dog."), embed(encoder, "A dog bit Tom.")
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	fmt.Printf("cosine %.4f\n", ab/math.Sqrt(aa*bb))
}

func embed(encoder *C.phasor_encoder, text string) []float32 {
	data := C.CString(text)
	defer C.free(unsafe.Pointer(data))
	list := (**C.char)(C.malloc(C.size_t(unsafe.Sizeof(data)))) // C may not hold Go's pointers
	defer C.free(unsafe.Pointer(list))
	*list = data
	var result *C.phasor_result
	check(C.phasor_embed(encoder, &C.phasor_texts{data: list, count: 1}, nil, &result))
	defer C.phasor_result_free(result)
	array := C.CString("dense")
	defer C.free(unsafe.Pointer(array))
	var vectors C.phasor_array // [1, W]
	check(C.phasor_result_array(result, array, -1, &vectors))
	values := unsafe.Slice((*float32)(vectors.data), int(vectors.shape[1]))
	return append([]float32(nil), values...)
}
