import { invalidArgument } from "../../core/errors.js";
import { readCounts } from "../env-options.js";
import { ExpressionError, ExpressionParser } from "../expression-parser.js";
import { Text } from "../spaces/text.js";
import { parseLastNumber } from "../text-parsing.js";
import { COMMAND_CHARSET, parseCommand, TaskEnv } from "./task-env.js";
/** Evaluates numbers, + - * / and parentheses, without executing code. */
export function calculate(expression) {
    try {
        const value = ExpressionParser.evaluate(expression);
        return Number.isFinite(value) ? { value } : { problem: "That divides by zero." };
    }
    catch (error) {
        if (error instanceof ExpressionError)
            return { problem: error.message };
        throw error;
    }
}
const MAX_COMMAND = 100;
const MAX_OBSERVATION = 8192;
const OPERATORS = ["+", "-", "*"];
const USAGE_HINT = "Say calculate and an expression, or answer and a number.";
/**
 * Answer an arithmetic question with a calculator: "calculate 473 * 89" returns its value,
 * "answer 42097" ends the episode. Observation: the question and the calculations. Reward: 1 for the right answer.
 */
export class CalculatorEnv extends TaskEnv {
    observationSpace = new Text(MAX_OBSERVATION, { charset: `${COMMAND_CHARSET}\n"=:` });
    actionSpace = new Text(MAX_COMMAND, { charset: COMMAND_CHARSET });
    text = calculatorText;
    operations;
    highest;
    turns;
    constructor(options = {}) {
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
    start() {
        const drawNumber = () => this.random.integers(1, this.highest + 1);
        const rest = Array.from({ length: this.operations }, () => `${this.random.choice(OPERATORS)} ${drawNumber()}`);
        const question = [drawNumber(), ...rest].join(" ");
        const result = calculate(question);
        return { question, answer: "value" in result ? result.value : 0, log: [] };
    }
    observe({ question, log }) {
        return [`What is ${question}?`, ...log].join("\n");
    }
    advance(state, command) {
        const [, verb, rest = ""] = /^\s*(calculate|answer)\b\s*(.*)$/i.exec(command) ?? [];
        const keyword = verb?.toLowerCase();
        if (keyword === "answer") {
            const isRight = parseLastNumber(rest.replaceAll(",", "")) === state.answer;
            return { state, reward: isRight ? 1 : 0, terminated: true };
        }
        const feedback = keyword === "calculate" ? formatCalculation(rest) : USAGE_HINT;
        const log = [...state.log, feedback];
        return { state: { ...state, log }, reward: 0, terminated: log.length >= this.turns };
    }
}
function formatCalculation(expression) {
    const result = calculate(expression);
    return "value" in result ? `${expression.trim()} = ${formatNumber(result.value)}` : result.problem;
}
/** Formats without an exponent, since answers have none. */
function formatNumber(value) {
    return Number.isInteger(value) && Math.abs(value) < 1e21 ? String(value) : value.toFixed(6);
}
const calculatorText = {
    systemPrompt: "Answer an arithmetic question. You have a calculator: write calculate and an expression, such as calculate 12 * (3 + 4), to be told its value. When you know the answer, write answer and the number, such as answer 84. One command each turn.",
    formatObservation: (observation) => observation,
    parseAction: (completion) => parseCommand(completion, { verbs: ["calculate", "answer"], charset: COMMAND_CHARSET, maxLength: MAX_COMMAND }),
    formatAction: (command) => command,
};
export const calculatorEnvs = [
    {
        id: "Calculator-v0",
        entryPoint: (options) => new CalculatorEnv(options),
        summary: "compute with a tool",
        knownReturns: { random: 0, best: 1, basis: "page" },
    },
];
