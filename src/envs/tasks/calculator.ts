import { invalidArgument } from "../../core/errors.js";
import { readCounts } from "../env-options.js";
import { ExpressionError, ArithmeticParser } from "../arithmetic-parser.js";
import { Text } from "../spaces/text.js";
import type { TextInterface } from "../text-interface.js";
import { parseLastNumber } from "../text-parsing.js";
import { COMMAND_CHARSET, parseCommand, TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";

/** Result of a calculation, or the reason of its failure. */
export type CalculationResult = { readonly value: number } | { readonly problem: string };

/** Evaluates numbers, + - * / and parentheses, without executing code. */
export function calculate(expression: string): CalculationResult {
  try {
    const value = ArithmeticParser.evaluate(expression);
    return Number.isFinite(value) ? { value } : { problem: "That divides by zero." };
  } catch (error) {
    if (error instanceof ExpressionError) return { problem: error.message };
    throw error;
  }
}

const MAX_COMMAND = 100;
const MAX_OBSERVATION = 8192;
const OPERATORS = ["+", "-", "*"];
const USAGE_HINT = "Say calculate and an expression, or answer and a number.";

/** Options of `CalculatorEnv`. */
export interface CalculatorOptions {
  /** Operators in the question. */
  readonly operations?: number;
  /** Largest number in the question. */
  readonly highest?: number;
  /** Commands per episode, including the answer. */
  readonly turns?: number;
}

type CalculatorState = { readonly question: string; readonly answer: number; readonly log: readonly string[] };

/**
 * Answer an arithmetic question with a calculator: "calculate 473 * 89" returns its value, "answer
 * 42097" ends the episode. Observation: the question and the calculations. Reward: 1 for the right
 * answer.
 */
export class CalculatorEnv extends TaskEnv<string, string, CalculatorState> {
  override readonly observationSpace = new Text(MAX_OBSERVATION, { charset: `${COMMAND_CHARSET}\n"=:` });
  override readonly actionSpace = new Text(MAX_COMMAND, { charset: COMMAND_CHARSET });
  override readonly text = calculatorText;
  private readonly operations: number;
  private readonly highest: number;
  private readonly turns: number;

  constructor(options: CalculatorOptions = {}) {
    super();
    const { operations, highest, turns } = readCounts("Calculator", options, {
      operations: [2, 1, 10],
      highest: [999, 1, Number.MAX_SAFE_INTEGER],
      turns: [5, 1, 50],
    });
    // Keeps answers exact.
    if (highest ** (operations + 1) > Number.MAX_SAFE_INTEGER) {
      const actual = `operations ${operations}, highest ${highest}`;
      throw invalidArgument(`Calculator takes highest^(operations + 1) below 2^53, got ${actual}.`);
    }
    this.operations = operations;
    this.highest = highest;
    this.turns = turns;
  }

  protected override start(): CalculatorState {
    const drawNumber = () => this.random.integers(1, this.highest + 1);
    const rest = Array.from({ length: this.operations }, () => `${this.random.choice(OPERATORS)} ${drawNumber()}`);
    const question = [drawNumber(), ...rest].join(" ");
    const result = calculate(question);
    return { question, answer: "value" in result ? result.value : 0, log: [] };
  }

  protected override observe({ question, log }: CalculatorState): string {
    return [`What is ${question}?`, ...log].join("\n");
  }

  protected override advance(state: CalculatorState, command: string): TaskStep<CalculatorState> {
    const [, verb, rest = ""] = /^\s*(calculate|answer)\b\s*(.*)$/i.exec(command) ?? [];
    const keyword = verb?.toLowerCase();
    if (keyword === "answer") {
      const isRight = parseLastNumber(rest.replaceAll(",", "")) === state.answer;
      return { state, reward: isRight ? 1 : 0, terminated: true, isSuccess: isRight };
    }
    const feedback = keyword === "calculate" ? formatCalculation(rest) : USAGE_HINT;
    const log = [...state.log, feedback];
    return { state: { ...state, log }, reward: 0, terminated: log.length >= this.turns, isSuccess: false };
  }
}

function formatCalculation(expression: string): string {
  const result = calculate(expression);
  return "value" in result ? `${expression.trim()} = ${formatNumber(result.value)}` : result.problem;
}

/** Formats without an exponent, since answers have none. */
function formatNumber(value: number): string {
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : value.toFixed(6);
}

const calculatorText: TextInterface<string, string> = {
  systemPrompt:
    "Answer an arithmetic question. You have a calculator: write calculate and an expression, such as calculate 12 * (3 + 4), to be told its value. When you know the answer, write answer and the number, such as answer 84. One command each turn.",
  formatObservation: (observation) => observation,
  parseAction: (completion) =>
    parseCommand(completion, { verbs: ["calculate", "answer"], charset: COMMAND_CHARSET, maxLength: MAX_COMMAND }),
  formatAction: (command) => command,
};

export const calculatorEnvs: readonly Registration[] = [
  {
    id: "Calculator-v0",
    entryPoint: (options) => new CalculatorEnv(options),
    summary: "compute with a tool",
    knownReturns: { random: 0, best: 1, basis: "page" },
  },
];
