// Compares the vectors of two sentences, in Rust:
//
//     rustc --edition 2021 -O examples/encode.rs -L build/release
//     LD_LIBRARY_PATH=build/release PHASOR_MODELS=models ./encode
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Texts {
    data: *const *const c_char,
    sizes: *const i64,
    count: i64,
}

#[repr(C)]
struct Array {
    data: *const c_void,
    element: i32,
    num_dims: i32,
    shape: [i64; 4],
}

#[link(name = "phasor_c")]
extern "C" {
    fn phasor_model_load(name: *const c_char, options: *const c_void, model: *mut *mut c_void) -> c_int;
    fn phasor_model_free(model: *mut c_void);
    fn phasor_encoder_create(model: *mut c_void, options: *const c_void, encoder: *mut *mut c_void) -> c_int;
    fn phasor_encoder_free(encoder: *mut c_void);
    fn phasor_embed(encoder: *mut c_void, texts: *const Texts, options: *const c_void, result: *mut *mut c_void) -> c_int;
    fn phasor_result_array(result: *const c_void, name: *const c_char, text: i64, array: *mut Array) -> c_int;
    fn phasor_result_free(result: *mut c_void);
    fn phasor_error_message() -> *const c_char;
}

fn check(status: c_int) {
    if status != 0 {
        panic!("{}", unsafe { CStr::from_ptr(phasor_error_message()) }.to_string_lossy());
    }
}

fn main() {
    let texts = ["Tom bit a dog.", "A dog bit Tom."];
    let data: Vec<_> = texts.iter().map(|text| text.as_ptr() as *const c_char).collect();
    let sizes: Vec<_> = texts.iter().map(|text| text.len() as i64).collect();
    let both = Texts { data: data.as_ptr(), sizes: sizes.as_ptr(), count: 2 };
    let (mut model, mut encoder, mut result) = (null_mut(), null_mut(), null_mut());
    let mut vectors = Array { data: null(), element: 0, num_dims: 0, shape: [0; 4] }; // [2, W]
    unsafe {
        check(phasor_model_load(c"sinusoidal".as_ptr(), null(), &mut model));
        check(phasor_encoder_create(model, null(), &mut encoder));
        check(phasor_embed(encoder, &both, null(), &mut result));
        check(phasor_result_array(result, c"dense".as_ptr(), -1, &mut vectors));
        let width = vectors.shape[1] as usize;
        let values = std::slice::from_raw_parts(vectors.data as *const f32, 2 * width);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| (x * y) as f64).sum::<f64>();
        let (a, b) = values.split_at(width);
        println!("cosine {:.4}", dot(a, b) / (dot(a, a) * dot(b, b)).sqrt());
        phasor_result_free(result);
        phasor_encoder_free(encoder);
        phasor_model_free(model);
    }
}
