import { byteLength } from "../../tensor/dtype.js";
import { mayBeEmpty, mulDims, type Shape } from "../dim.js";
import { Emitter, valueInfo } from "../emitter.js";
import type { TensorType } from "../node.js";

/**
 * Emits a value that is zeros where the product of the dimensions is 0, for kernels that do not bear empty values: some of
 * WebGPU's bring the whole process down. On other devices `emit` stands by itself.
 */
export function whenFilled(
  dims: Shape,
  { dtype, shape }: TensorType,
  emitter: Emitter,
  emit: (into: Emitter) => string,
): string {
  const size = mulDims(...dims);
  if (emitter.device !== "webgpu" || !dims.some(mayBeEmpty)) return emit(emitter);
  if (size === 0) return emitter.zeros(dtype, shape);
  const filled = emitter.once(`is ${size.toString()} filled`, () =>
    emitter.emit("Squeeze", [emitter.emit("Greater", [emitter.dim(size), emitter.ints([0])])]),
  );
  const [then, otherwise] = [new Emitter(emitter), new Emitter(emitter)];
  // The sizes are computed outside: only the graph itself knows its inputs.
  const target = emitter.shape(shape);
  const zero = otherwise.constant(dtype, [], new Uint8Array(byteLength(dtype, 1)));
  const branch = (into: Emitter, name: string) => into.graph("branch", [], [valueInfo(name, dtype, shape)]);
  return emitter.emit("If", [filled], {
    attributes: {
      then_branch: branch(then, emit(then)),
      else_branch: branch(otherwise, otherwise.emit("Expand", [zero, target])),
    },
  });
}
