import type { Dim } from "../../graph/dim.js";
import type { ConstantAttributes } from "../../graph/ops/leaves.js";
import type { DType } from "../../tensor/dtype.js";
import type { Shape } from "../../graph/dim.js";
import { mulDims } from "../../graph/dim.js";
import { countElements } from "../../../core/numbers.js";
import { contiguousStrides } from "../expression.js";
import { STORED_FORMATS } from "../program.js";
import { toWords } from "../words.js";
import type { GpuForm } from "./form.js";

interface Named {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
}

/** Form of a value that is stored outside of the program. */
const stored =
  (kind: "input" | "weight"): GpuForm<Named> =>
  ({ program, attributes: { name, dtype, shape } }) => {
    const format = STORED_FORMATS[dtype];
    const value = program.addValue({ kind, name }, format, program.dim(mulDims(...shape)));
    return { kind: "view", dtype, shape, view: { value, format, offset: 0, strides: contiguousStrides(shape) } };
  };

const constant: GpuForm<ConstantAttributes> = ({ program, attributes: { dtype, shape, data } }) => {
  const isPacked = dtype !== "float32" && dtype !== "int32" && dtype !== "int64" && dtype !== "bool";
  if (countElements(shape) === 1 && !isPacked) return { kind: "literal", dtype, shape, value: Number(data[0]) };
  const format = STORED_FORMATS[dtype];
  const value = program.addValue({ kind: "constant", words: toWords(dtype, data) }, format, countElements(shape));
  return { kind: "view", dtype, shape, view: { value, format, offset: 0, strides: contiguousStrides(shape) } };
};

const dimValue: GpuForm<{ readonly dim: Dim }> = ({ attributes: { dim } }) => ({
  kind: "dim",
  dtype: "float32",
  shape: [],
  dim,
});

const output: GpuForm<{ readonly index: number }> = ({ inputs, attributes: { index } }) => inputs[index];

export const leafForms = { input: stored("input"), weight: stored("weight"), constant, dimValue, output };
