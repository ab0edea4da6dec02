import { ArithmeticParser } from "../arithmetic-parser.js";
import type { Draw, ReasoningItem, ReasoningTask } from "./reasoning-task.js";
import { verifyContained, verifyCountdown, verifyDecimal } from "./verifiers.js";

/** Sums and differences of numbers with equally many digits. */
export const chainSum: ReasoningTask = {
  name: "chain_sum",
  summary: "add and subtract",
  levels: [
    { terms: [2, 2], digits: [1, 1] },
    { terms: [2, 3], digits: [1, 2] },
    { terms: [2, 6], digits: [1, 4] },
    { terms: [4, 8], digits: [3, 6] },
    { terms: [6, 12], digits: [4, 9] },
  ],
  defaultLevel: 2,
  verify: verifyDecimal,
  createItem(draw) {
    const [terms, digits] = [draw.setting("terms"), draw.setting("digits")];
    const drawTerm = () => draw.int(digits === 1 ? 0 : 10 ** (digits - 1), 10 ** digits - 1);
    const rest = draw.list(terms - 1, () => `${draw.pick(["+", "-"])} ${drawTerm()}`);
    const expression = [drawTerm(), ...rest].join(" ");
    return {
      question: `What is ${expression}?`,
      answer: String(ArithmeticParser.evaluate(expression)),
      metadata: { num_terms: terms, num_digits: digits, expression },
    };
  },
};

const computeGcd = (a: number, b: number): number => (b === 0 ? a : computeGcd(b, a % b));
const formatList = (values: readonly (string | number)[]) => `${values.slice(0, -1).join(", ")} and ${values.at(-1)}`;

const createNumbersTask = (
  name: string,
  summary: string,
  maxValues: readonly number[],
  combine: (a: number, b: number) => number,
): ReasoningTask => ({
  name,
  summary: `find the ${summary}`,
  levels: [
    ...maxValues.map((max) => ({ numbers: [2, 2], value: [1, max] }) as const),
    { numbers: [3, 4], value: [1, maxValues.at(-1)!] },
  ],
  defaultLevel: 1,
  verify: verifyContained,
  createItem(draw) {
    const numbers = draw.list(draw.setting("numbers"), () => draw.setting("value"));
    const result = numbers.reduce(combine);
    return {
      question: `What is the ${summary} of ${formatList(numbers)}?`,
      answer: String(result),
      metadata: { numbers, result, num_terms: numbers.length },
    };
  },
});

export const gcd = createNumbersTask("gcd", "greatest common divisor", [20, 1000, 10_000], computeGcd);
export const lcm = createNumbersTask(
  "lcm",
  "least common multiple",
  [12, 100, 500],
  (a, b) => (a / computeGcd(a, b)) * b,
);

/** Numbers written in another base. */
export const baseConversion: ReasoningTask = {
  name: "base_conversion",
  summary: "write a number in another base",
  levels: [
    { base: [2, 10], value: [0, 30] },
    { base: [2, 16], value: [0, 1000] },
    { base: [2, 36], value: [0, 100_000] },
  ],
  defaultLevel: 1,
  verify: verifyContained,
  createItem(draw) {
    const value = draw.setting("value");
    const source = draw.setting("base");
    let target = draw.setting("base");
    while (target === source) target = draw.setting("base");
    return {
      question: `Write the base-${source} number ${value.toString(source)} in base ${target}. Digits above 9 are a to z.`,
      answer: value.toString(target),
      metadata: { decimal_value: value, source_base: source, target_base: target },
    };
  },
};

/** Ones in the binary form of a number. */
export const countBits: ReasoningTask = {
  name: "count_bits",
  summary: "count binary ones",
  levels: [{ value: [1, 31] }, { value: [1, 1023] }, { value: [1, 2 ** 31 - 1] }],
  defaultLevel: 2,
  verify: verifyContained,
  createItem(draw) {
    const number = draw.setting("value");
    const answer = String(number.toString(2).replaceAll("0", "").length);
    return { question: `How many ones has ${number} in binary?`, answer, metadata: { number } };
  },
};

/** A linear equation in one variable. */
export const simpleEquations: ReasoningTask = {
  name: "simple_equations",
  summary: "solve an equation",
  levels: [
    { value: [1, 10], constants: [0, 1] },
    { value: [1, 100], constants: [0, 2] },
    { value: [1, 1000], constants: [1, 3] },
  ],
  defaultLevel: 1,
  verify: verifyContained,
  createItem(draw) {
    const variable = draw.pick(Array.from("abcdefghijklmnopqrstuvwxyz"));
    const [solution, factor] = [draw.setting("value"), draw.setting("value")];
    const constants = draw.list(draw.setting("constants"), () => `${draw.pick(["+", "-"])} ${draw.setting("value")}`);
    const sum = [`${factor}*${solution}`, ...constants].join(" ");
    const equation = `${[`${factor}*${variable}`, ...constants].join(" ")} = ${ArithmeticParser.evaluate(sum)}`;
    return {
      question: `Solve for ${variable}: ${equation}`,
      answer: String(solution),
      metadata: { equation, variable },
    };
  },
};

/** A target number from given ones. */
export const countdown: ReasoningTask = {
  name: "countdown",
  summary: "make a number from others",
  levels: [
    { numbers: [2, 2], value: [1, 20], target: [1, 99] },
    { numbers: [3, 3], value: [1, 50], target: [10, 199] },
    { numbers: [4, 6], value: [1, 100], target: [100, 999] },
    { numbers: [6, 9], value: [1, 100], target: [100, 9999] },
  ],
  defaultLevel: 2,
  verify: verifyCountdown,
  createItem: drawCountdown,
};

const MAX_PRODUCT = 100_000;

/** A value with its expression; sums need brackets inside products. */
interface Term {
  readonly value: number;
  readonly text: string;
  readonly isSum: boolean;
}

/**
 * Combines the numbers at random until the result is in the range of targets; all values are
 * positive integers.
 */
function drawCountdown(draw: Draw): ReasoningItem {
  const [low, high] = draw.range("target");
  for (;;) {
    const numbers = draw.list(draw.setting("numbers"), () => draw.setting("value"));
    const terms: Term[] = numbers.map((value) => ({ value, text: String(value), isSum: false }));
    while (terms.length > 1) {
      const [a, b] = draw.subset([...terms.keys()], 2);
      const combined = combineTerms(terms[a], terms[b], draw.pick(["+", "-", "*", "/"] as const));
      if (combined === undefined) continue;
      terms[Math.min(a, b)] = combined;
      terms.splice(Math.max(a, b), 1);
    }
    const [{ value: target, text: answer }] = terms;
    if (target < low || target > high) continue;
    const question = `Make ${target} from ${formatList(numbers)}, each once, with + - * / and brackets. Answer with the expression alone.`;
    return { question, answer, metadata: { numbers, target } };
  }
}

/**
 * Returns the combined term; undefined where its value is not a positive integer, or a large
 * product.
 */
function combineTerms(a: Term, b: Term, operator: "+" | "-" | "*" | "/"): Term | undefined {
  const isSum = operator === "+" || operator === "-";
  const value = {
    "+": a.value + b.value,
    "-": a.value - b.value,
    "*": a.value * b.value,
    "/": a.value / b.value,
  }[operator];
  if (!Number.isInteger(value) || value < 1 || (operator === "*" && value > MAX_PRODUCT)) return undefined;
  const left = a.isSum && !isSum ? `(${a.text})` : a.text;
  const right = (b.isSum && operator !== "+") || operator === "/" ? `(${b.text})` : b.text;
  return { value, text: `${left} ${operator} ${right}`, isSum };
}
