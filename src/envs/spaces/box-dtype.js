import { invalidArgument } from "../../core/errors.js";
const floatEntry = (array, max) => ({ array, min: -max, max, kind: "float" });
const FLOAT32_MAX = 3.4028234663852886e38;
/** Element types of a Box, with their array type and range. */
export const BOX_DTYPES = {
    float32: { ...floatEntry(Float32Array, FLOAT32_MAX), array: Float32Array },
    float64: { ...floatEntry(Float64Array, Number.MAX_VALUE), array: Float64Array },
    int8: { array: Int8Array, min: -128, max: 127, kind: "signed" },
    uint8: { array: Uint8Array, min: 0, max: 255, kind: "unsigned" },
    int16: { array: Int16Array, min: -32768, max: 32767, kind: "signed" },
    uint16: { array: Uint16Array, min: 0, max: 65535, kind: "unsigned" },
    int32: { array: Int32Array, min: -2147483648, max: 2147483647, kind: "signed" },
    uint32: { array: Uint32Array, min: 0, max: 4294967295, kind: "unsigned" },
    // Doubles represent integers up to 2^53 exactly.
    int64: { array: Float64Array, min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, kind: "signed" },
};
export function getDtypeEntry(dtype) {
    const entry = BOX_DTYPES[dtype];
    if (entry !== undefined)
        return entry;
    throw invalidArgument(`Box dtype "${dtype}" is not supported. Supported: ${Object.keys(BOX_DTYPES).join(", ")}.`);
}
