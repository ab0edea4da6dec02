import { invalidArgument } from "../../../core/errors.js";
import { mulDims, type Dim } from "../../graph/dim.js";
import { countLogitRows, MASKED_LOGIT, type LmHeadAttributes } from "../../graph/ops/token-log-probs.js";
import type { Expression, PendingProduct, ValueView } from "../expression.js";
import { KernelWriter } from "../kernel-writer.js";
import type { ProgramBuilder } from "../program-builder.js";
import { declareReductions, neutral, reduceInGroup } from "../reduce-in-group.js";
import { writeProduct } from "../write-product.js";
import type { GpuForm } from "./form.js";

const THREADS = 256;

/**
 * Parts of the vocabulary that are added up by different workgroups in the gradient of hidden
 * states, whose few elements would keep few workgroups busy; and least tokens of a part.
 */
const MAX_PARTS = 16;
const MIN_PART = 1024;

export const tokenLogProbs: GpuForm<LmHeadAttributes> = ({ program, node, inputs, attributes, isRead }) => {
  const { hasBias, hasScales, hasSets, entropy, softcap } = attributes;
  if (hasScales) throw invalidArgument("tokenLogProbs of an output matrix in codes has no form for the GPU.");
  const [hidden, head, targets, inverseTemperature, ...others] = inputs.map((each) => program.contiguous(each));
  const bias = hasBias ? others[0] : undefined;
  const [sets, setIndices] = hasSets ? others.slice(-2) : [undefined, undefined];
  const [rows, width] = hidden.shape;
  const vocabulary = head.shape[0];
  const results = node.outputs.map(({ dtype, shape }) => program.temporary(dtype, shape));
  const requested = results.map((_, index) => isRead(index));
  const chunkRows = countLogitRows(vocabulary);
  const chunkSize = mulDims(chunkRows, vocabulary);
  const createChunk = () => {
    const value = program.addValue({ kind: "temporary" }, "f32", program.dim(chunkSize));
    return { value, format: "f32" as const, offset: 0, strides: [vocabulary, 1] };
  };
  const logits = createChunk();
  const withDirection = requested[1];
  const withEntropyDirection = entropy === "gradient" && requested[4];
  const entropyWeights = withEntropyDirection ? createChunk() : undefined;
  const multiplyByHead = createHeadProduct(program, head);

  program.repeat(rows, chunkRows, (chunk) => {
    const hiddenRows = { ...hidden.view, offset: mulDims(chunk.start, width) };
    multiply(program, { view: hiddenRows, shape: [chunk.rows, width] }, head, true, logits);
    const writer = new KernelWriter(program);
    declareReductions(writer, THREADS);
    const size = writer.dim(vocabulary);
    const own = writer.write(logits);
    const scale = writer.assign("f32", writer.evaluate(inverseTemperature, []));
    writer.line(`let row = group + ${writer.dim(chunk.start)}; let start = group * ${size};`);
    writer.line(`let target_token = u32(${writer.evaluate(targets, ["row"])});`);
    const set = sets && setIndices && writer.assign("u32", `u32(${writer.evaluate(setIndices, ["row"])})`);
    const loop = (write: () => void) => {
      writer.line(`for (var i = thread; i < ${size}; i += ${THREADS}u) {`);
      writer.scoped(write);
      writer.line("}");
    };
    writer.line(`var largest = ${neutral("max")};`);
    loop(() => {
      writer.line(`var x = ${own}(start + i);`);
      if (bias !== undefined) writer.line(`x += ${writer.evaluate(bias, ["i"])};`);
      if (softcap !== undefined) writer.line(`x = tanh(clamp(x / ${softcap}, -20.0, 20.0)) * ${softcap};`);
      writer.line(`x *= ${scale};`);
      if (set !== undefined) writer.line(`x = select(f32(${MASKED_LOGIT}), x, ${writer.evaluate(sets!, [set, "i"])});`);
      writer.line(`set_${own}(start + i, x); largest = max(largest, x);`);
    });
    const max = reduceInGroup(writer, "max", "largest", THREADS);
    writer.line("var total = 0.0;");
    loop(() => writer.line(`total += exp(${own}(start + i) - ${max});`));
    const sum = reduceInGroup(writer, "sum", "total", THREADS);
    writer.line(`let shift = ${max} + log(${sum});`);
    const store = (index: number, value: string) => {
      if (!requested[index]) return;
      writer.line(`if (thread == 0u) { set_${writer.write(results[index].view)}(row, ${value}); }`);
    };
    writer.line(`let target_logit = ${own}(start + target_token);`);
    store(0, "target_logit - shift");
    store(2, `${max} - shift`);
    if (entropy !== "none") {
      writer.line("var weighted = 0.0;");
      loop(() => writer.line(`let l = ${own}(start + i) - shift; weighted += exp(l) * l;`));
      writer.line(`let entropy = -${reduceInGroup(writer, "sum", "weighted", THREADS)};`);
      store(3, "entropy");
    }
    if (withDirection || entropyWeights !== undefined) {
      const entropyName = entropyWeights && writer.write(entropyWeights);
      writer.line("workgroupBarrier();");
      loop(() => {
        writer.line(`let x = ${own}(start + i); let l = x - shift; let p = exp(l); var slope = ${scale};`);
        if (softcap !== undefined) writer.line(`let c = x / (${scale} * ${softcap}); slope *= 1.0 - c * c;`);
        if (set !== undefined) writer.line(`if (!${writer.evaluate(sets!, [set, "i"])}) { slope = 0.0; }`);
        if (entropyName !== undefined) writer.line(`set_${entropyName}(start + i, -p * (l + entropy) * slope);`);
        writer.line(`set_${own}(start + i, (select(0.0, 1.0, i == target_token) - p) * slope);`);
      });
    }
    program.addStep(writer, "token log-probabilities", THREADS, [program.dim(chunk.rows)]);
    const addDirection = (weights: ValueView, index: number) => {
      const target = { ...results[index].view, offset: mulDims(chunk.start, width) };
      multiplyByHead(chunk.rows, weights, target);
    };
    if (withDirection) addDirection(logits, 1);
    if (entropyWeights !== undefined) addDirection(entropyWeights, 4);
  });
  return results;
};

/** Returns a function that multiplies rows of weights of the vocabulary by the head. */
function createHeadProduct(
  program: ProgramBuilder,
  head: Extract<Expression, { kind: "view" }>,
): (rows: Dim, weights: ValueView, target: ValueView) => void {
  const [vocabulary, width] = head.shape;
  const plain = (rows: Dim, view: ValueView, target: ValueView) =>
    multiply(program, { view, shape: [rows, vocabulary] }, head, false, target);
  if (typeof vocabulary !== "number") return plain;
  let parts = MAX_PARTS;
  while (parts > 1 && (vocabulary % parts > 0 || vocabulary / parts < MIN_PART)) parts /= 2;
  if (parts === 1) return plain;
  const part = vocabulary / parts;
  const sums = program.addValue(
    { kind: "temporary" },
    "f32",
    program.dim(mulDims(parts, countLogitRows(vocabulary), width)),
  );
  const headParts = { view: { ...head.view, strides: [mulDims(part, width), width, 1] }, shape: [parts, part, width] };
  return (rows, weights, target) => {
    const a = { view: { ...weights, strides: [part, vocabulary, 1] }, shape: [parts, rows, part] };
    const strides = [mulDims(rows, width), width, 1];
    multiply(program, a, headParts, false, { value: sums, format: "f32", offset: 0, strides });
    const args = Array.from({ length: parts }, (_, i) => {
      const view = { value: sums, format: "f32" as const, offset: mulDims(i, rows, width), strides: [width, 1] };
      return { kind: "view" as const, dtype: "float32" as const, shape: [rows, width], view };
    });
    const write = (values: readonly string[]) => values.join(" + ");
    program.store({ kind: "call", dtype: "float32", shape: [rows, width], args, write }, target);
  };
}

/** Multiplies rows by the head or, with `transposeB`, by its transpose. */
function multiply(
  program: ProgramBuilder,
  a: PendingProduct["a"],
  head: PendingProduct["b"],
  transposeB: boolean,
  target: ValueView,
): void {
  const shape = [...a.shape.slice(0, -1), head.shape.at(transposeB ? -2 : -1)!];
  const inner = a.shape.at(-1)!;
  const product: PendingProduct = { a, b: head, transposeA: false, transposeB, alpha: 1, inner };
  const root = { kind: "product" as const, dtype: "float32" as const, shape, product };
  writeProduct(program, root, shape, [root], target);
}
