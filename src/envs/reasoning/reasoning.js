import { invalidArgument } from "../../core/errors.js";
import { applyDefaults } from "../env-options.js";
import { Text } from "../spaces/text.js";
import { TaskEnv } from "../tasks/task-env.js";
import { CurriculumWrapper } from "./curriculum.js";
import { checkLevel, drawItem, extractAnswer, findReasoningTask, REASONING_TASKS, scoreCompletion } from "./tasks.js";
import { KNOWN_RETURNS } from "./known-returns.js";
const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("");
const CHARSET = `${PRINTABLE}\n`;
const MAX_QUESTION = 4096;
const MAX_ANSWER = 1000;
const MAX_ATTEMPTS = 20;
/**
 * Answer a generated question whose answer a verifier scores. Observation: the question, and wrong answers so far.
 * Reward: the score of the last answer, 0 to 1.
 */
export class ReasoningEnv extends TaskEnv {
    observationSpace = new Text(MAX_QUESTION, { charset: CHARSET });
    actionSpace = new Text(MAX_ANSWER, { charset: CHARSET });
    text = reasoningText;
    /** Level of the questions from the next reset on. */
    level;
    task;
    attempts;
    constructor({ level = null, ...options } = {}) {
        super();
        const { task, attempts } = applyDefaults("Reasoning", options, { task: "chain_sum", attempts: 1 });
        this.task = findReasoningTask(task);
        this.level = checkLevel(this.task, level ?? undefined);
        if (!(Number.isInteger(attempts) && attempts >= 1 && attempts <= MAX_ATTEMPTS))
            throw invalidArgument(`Reasoning: option attempts must be an integer from 1 to ${MAX_ATTEMPTS}, got ${attempts}.`);
        this.attempts = attempts;
    }
    /** Highest level of the task. */
    get maxLevel() {
        return this.task.levels.length - 1;
    }
    /** Reference answer of the present question. */
    get answer() {
        return this.currentState.item.answer;
    }
    start() {
        const { question, answer, metadata } = drawItem(this.task, this.level, this.random);
        return { item: { question, answer, metadata }, log: [] };
    }
    observe({ item, log }) {
        return [item.question, ...log].join("\n");
    }
    describe() {
        return { level: this.level };
    }
    advance(state, completion) {
        const score = scoreCompletion(this.task, completion, state.item);
        const log = [...state.log, `Not right (score ${score.toFixed(2)}): ${excerptAnswer(completion)}`];
        const isOver = score >= 1 || log.length >= this.attempts;
        return { state: { ...state, log: isOver ? state.log : log }, reward: isOver ? score : 0, terminated: isOver };
    }
    saveState() {
        return { level: this.level, task: super.saveState() };
    }
    loadState(json) {
        const { level, task } = json;
        this.level = checkLevel(this.task, level);
        super.loadState(task);
    }
}
/** The beginning of a wrong answer, on one line. */
function excerptAnswer(completion) {
    const answer = extractAnswer(completion).replace(/\s+/g, " ");
    return answer.length <= 80 ? answer : `${answer.slice(0, 77)}...`;
}
const reasoningText = {
    systemPrompt: "Answer the question. Write the answer alone, or your reasoning and then <answer>the answer</answer>.",
    formatObservation: (observation) => observation,
    parseAction: (completion) => {
        const answer = (/<answer>/i.test(completion) ? extractAnswer(completion) : completion).slice(0, MAX_ANSWER + 1);
        const plain = Array.from(answer, (character) => (CHARSET.includes(character) ? character : "?")).join("");
        return plain.trim() === "" || plain.length > MAX_ANSWER ? undefined : plain;
    },
    formatAction: (answer) => answer,
};
const createExpert = (env) => {
    const reasoning = env.unwrapped;
    return () => reasoning.answer;
};
/** Creates the environment; with `curriculum`, its level follows the scores. */
function createReasoning({ curriculum = false, ...options }) {
    if (typeof curriculum !== "boolean")
        throw invalidArgument(`Reasoning: option curriculum must be a boolean, got ${JSON.stringify(curriculum)}.`);
    const env = new ReasoningEnv(options);
    return curriculum ? new CurriculumWrapper(env) : env;
}
export const reasoningEnvs = REASONING_TASKS.map(({ name, summary }) => ({
    id: `Reasoning-${name.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())}-v0`,
    entryPoint: createReasoning,
    options: { task: name },
    summary,
    knownReturns: { random: KNOWN_RETURNS[name], best: 1, basis: "measured" },
    expert: createExpert,
}));
