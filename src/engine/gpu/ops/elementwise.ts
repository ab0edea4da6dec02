import type { DType } from "../../tensor/dtype.js";
import { wgslType, type Expression } from "../expression.js";
import type { GpuForm } from "./form.js";

/** Form of a function of elements, as WGSL of its arguments. */
const elementwise =
  (write: (...args: string[]) => string): GpuForm<object> =>
  ({ node: { dtype, shape }, inputs }) => ({
    kind: "call",
    dtype,
    shape,
    args: inputs,
    write: (args) => write(...args),
  });

const alias: GpuForm<object> = ({ inputs: [x] }) => x;

/** tanh overflows for large arguments in some drivers; beyond 20 it is 1 in float32. */
const tanh = (x: string) => `tanh(clamp(${x}, -20.0, 20.0))`;
const sigmoid = (x: string) => `1.0 / (1.0 + exp(-${x}))`;

/**
 * Coefficients of the rational approximation of erf in float32 (odd numerator, even denominator).
 */
const ERF_NUMERATOR = [
  -2.72614225801306e-10, 2.77068142495902e-8, -2.10102402082508e-6, -5.69250639462346e-5, -7.34990630326855e-4,
  -2.954600107958e-3, -1.60960333262415e-2,
];
const ERF_DENOMINATOR = [
  -1.45660718464996e-5, -2.13374055278905e-4, -1.68282697438203e-3, -7.37332916720468e-3, -1.42647390514189e-2,
];
const horner = (coefficients: readonly number[], x: string) =>
  coefficients.slice(1).reduce((code, c) => `(${code} * ${x} + ${c})`, `${coefficients[0]}`);

function erf(x: string): string {
  const clamped = `clamp(${x}, -4.0, 4.0)`;
  const squared = `(${clamped} * ${clamped})`;
  return `(${clamped} * ${horner(ERF_NUMERATOR, squared)} / ${horner(ERF_DENOMINATOR, squared)})`;
}

const GELU_SCALE = Math.sqrt(2 / Math.PI);

const cast: GpuForm<{ readonly to: DType }> = ({ node: { shape }, inputs: [x], attributes: { to } }) => {
  const from = wgslType(x.dtype);
  const target = wgslType(to);
  const write = ([value]: readonly string[]) => {
    if (from === target) return value;
    if (target === "bool") return `${value} != ${from === "f32" ? "0.0" : "0i"}`;
    if (from === "bool") return target === "f32" ? `select(0.0, 1.0, ${value})` : `select(0i, 1i, ${value})`;
    return `${target}(${value})`;
  };
  const result: Expression = { kind: "call", dtype: to, shape, args: [x], write };
  return from === target ? { ...x, dtype: to } : result;
};

const add: GpuForm<object> = ({ node: { dtype, shape }, inputs }) => ({
  kind: "call",
  dtype,
  shape,
  args: inputs,
  write: ([a, b]) => `${a} + ${b}`,
  isSum: true,
});

export const elementwiseForms = {
  add,
  sub: elementwise((a, b) => `${a} - ${b}`),
  mul: elementwise((a, b) => `${a} * ${b}`),
  div: elementwise((a, b) => `${a} / ${b}`),
  minimum: elementwise((a, b) => `min(${a}, ${b})`),
  maximum: elementwise((a, b) => `max(${a}, ${b})`),
  neg: elementwise((x) => `-${x}`),
  exp: elementwise((x) => `exp(${x})`),
  log: elementwise((x) => `log(${x})`),
  sqrt: elementwise((x) => `sqrt(${x})`),
  abs: elementwise((x) => `abs(${x})`),
  tanh: elementwise(tanh),
  sigmoid: elementwise(sigmoid),
  erf: elementwise(erf),
  silu: elementwise((x) => `${x} / (1.0 + exp(-${x}))`),
  gelu: elementwise((x) => `0.5 * ${x} * (1.0 + ${erf(`(${x} * ${Math.SQRT1_2})`)})`),
  geluTanh: elementwise(
    (x) => `0.5 * ${x} * (1.0 + ${tanh(`${GELU_SCALE} * (${x} + 0.044715 * ${x} * ${x} * ${x})`)})`,
  ),
  less: elementwise((a, b) => `${a} < ${b}`),
  lessEqual: elementwise((a, b) => `${a} <= ${b}`),
  equal: elementwise((a, b) => `${a} == ${b}`),
  and: elementwise((a, b) => `${a} && ${b}`),
  or: elementwise((a, b) => `${a} || ${b}`),
  not: elementwise((x) => `!${x}`),
  where: elementwise((condition, a, b) => `select(${b}, ${a}, ${condition})`),
  cast,
  stopGradient: alias,
  withGradientOf: alias,
};
