import { dim } from "../dim.js";
import { createValueInfo, Emitter } from "../emitter.js";
import { dtypes } from "../../tensor/dtype.js";

/** Emits what a chunk of rows needs of an output matrix [vocabulary, width]. */
export interface OutputMatrix {
  /** Multiplies hidden states [rows, width] by the transposed matrix: [rows, vocabulary]. */
  readonly multiply: (hidden: string, emitter: Emitter) => string;
  /** Multiplies gradients [rows, vocabulary] by the matrix: [rows, width]. */
  readonly backpropagate: (gradients: string, emitter: Emitter) => string;
  /** Returns the rows of tokens [rows]: [rows, width]. */
  readonly gather: (tokens: string, emitter: Emitter) => string;
}

/** Returns a matrix of float32 values. */
export const createFloatMatrix = (values: string): OutputMatrix => ({
  multiply: (hidden, emitter) => multiplyTransposed(hidden, values, emitter),
  backpropagate: (gradients, emitter) => emitter.emit("MatMul", [gradients, values]),
  gather: (tokens, emitter) => emitter.emit("Gather", [values, tokens], { axis: 0 }),
});

export interface MatrixCodes {
  /** Name of the int8 codes. */
  readonly codes: string;
  /** Name of the scales [vocabulary]. */
  readonly scales: string;
  /** [vocabulary, width] */
  readonly shape: readonly number[];
  /** Bytes of values in memory at once. */
  readonly tileBytes: number;
}

/** Returns a matrix of codes * scales, widened in scans over tiles of rows. */
export function createCodedMatrix({ codes, scales, shape, tileBytes }: MatrixCodes): OutputMatrix {
  const [vocabulary, width] = shape;
  const tiles = Math.ceil((4 * vocabulary * width) / tileBytes);
  const tileRows = Math.ceil(vocabulary / tiles);
  const starts = Array.from({ length: tiles }, (_, i) => i * tileRows);
  return {
    multiply: (hidden, emitter) => {
      // A scan's outputs have equal shapes, so the last tile begins earlier.
      const from = starts.map((start) => Math.min(start, vocabulary - tileRows));
      const to = from.map((start) => start + tileRows);
      const body = new Emitter(emitter);
      const bounds = declareBounds(body);
      const logits = multiplyTransposed(hidden, widen({ codes, scales }, bounds, body), body);
      const shapeOfTile = [dim(body.newName("rows")), tileRows];
      const graph = body.toGraph("tile", bounds.inputs, [createValueInfo(logits, "float32", shapeOfTile)]);
      const stacked = emitter.emit("Scan", [emitter.ints(from), emitter.ints(to)], {
        body: graph,
        num_scan_inputs: 2,
        scan_output_axes: [1],
      });
      const columns = emitter.emit("Reshape", [stacked, emitter.ints([-1, tiles * tileRows])]);
      const excess = tiles * tileRows - vocabulary;
      if (excess === 0) return columns;
      const whole = (tiles - 1) * tileRows;
      const parts = [emitter.slice(columns, 1, 0, whole), emitter.slice(columns, 1, whole + excess, tileRows - excess)];
      return emitter.emit("Concat", parts, { axis: 1 });
    },
    backpropagate: (gradients, emitter) => {
      const to = starts.map((start) => Math.min(start + tileRows, vocabulary));
      const body = new Emitter(emitter);
      const sum = body.newName("sum");
      const bounds = declareBounds(body);
      const columns = body.emit("Slice", [gradients, bounds.start, bounds.end, body.ints([1])]);
      const product = body.emit("MatMul", [columns, widen({ codes, scales }, bounds, body)]);
      const next = body.emit("Add", [sum, product]);
      const [before, after] = [sum, next].map((name) =>
        createValueInfo(name, "float32", [dim(body.newName("rows")), width]),
      );
      const rows = emitter.emit("Shape", [gradients], { start: 0, end: 1 });
      const size = emitter.emit("Concat", [rows, emitter.ints([width])], { axis: 0 });
      const zeros = emitter.emit("Expand", [emitter.float(0), size]);
      return emitter.emit("Scan", [zeros, emitter.ints(starts), emitter.ints(to)], {
        body: body.toGraph("tile", [before, ...bounds.inputs], [after]),
        num_scan_inputs: 2,
      });
    },
    gather: (tokens, emitter) => {
      const rows = emitter.emit("Cast", [emitter.emit("Gather", [codes, tokens], { axis: 0 })], {
        to: dtypes.float32.onnx,
      });
      const rowScales = emitter.emit("Unsqueeze", [emitter.emit("Gather", [scales, tokens]), emitter.ints([-1])]);
      return emitter.emit("Mul", [rows, rowScales]);
    },
  };
}

/** Bounds of a tile in the body of a scan over them. */
interface TileBounds {
  readonly inputs: readonly ReturnType<typeof createValueInfo>[];
  /** First row, and the one after the last: [1]. */
  readonly start: string;
  readonly end: string;
}

function declareBounds(body: Emitter): TileBounds {
  const names = [body.newName("start"), body.newName("end")];
  const [start, end] = names.map((name) => body.emit("Reshape", [name, body.ints([1])]));
  return { inputs: names.map((name) => createValueInfo(name, "int64", [])), start, end };
}

/**
 * Emits the values of a tile's rows. ONNX Runtime does not fold what depends on a scan's inputs.
 */
function widen(
  { codes, scales }: Pick<MatrixCodes, "codes" | "scales">,
  { start, end }: TileBounds,
  body: Emitter,
): string {
  const axis = body.ints([0]);
  const tile = body.emit("Slice", [codes, start, end, axis]);
  return body.emit("DequantizeLinear", [tile, body.emit("Slice", [scales, start, end, axis])], { axis: 0 });
}

/** Multiplies a [rows, width] by the transpose of b [columns, width]. */
function multiplyTransposed(a: string, b: string, emitter: Emitter): string {
  // WebGPU has no FusedMatMul; ONNX Runtime would fall back to the CPU.
  return emitter.emit(emitter.device === "webgpu" ? "Gemm" : "FusedMatMul", [a, b], { transB: 1 });
}
