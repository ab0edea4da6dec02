export { type DType, byteLength, dtypes } from "./dtype.js";
export { type FloatTensor, type Tensor, float32, int32, tensor } from "./tensor.js";
