import { LlamaGymError } from "../../core/errors.js";
import { Env, } from "../env.js";
/**
 * A task whose whole state is one JSON value. Subclasses define the initial state, its observation and the transition
 * for an action. States are immutable.
 */
export class TaskEnv extends Env {
    metadata = { renderModes: ["ansi"], renderFps: 4 };
    state;
    isOver = false;
    /** Returns the info of a state, as a new value. */
    describe(_state) {
        return {};
    }
    reset({ seed } = {}) {
        this.reseed(seed);
        this.state = this.start();
        this.isOver = false;
        return { observation: this.observe(this.state), info: this.describe(this.state) };
    }
    step(action) {
        this.checkAction(action);
        if (this.state === undefined)
            throw this.notResetError();
        if (this.isOver)
            throw new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: the episode has ended. Call reset().`);
        const { state, reward, terminated, truncated = false } = this.advance(this.state, action);
        this.state = state;
        this.isOver = terminated || truncated;
        return { observation: this.observe(state), reward, terminated, truncated, info: this.describe(state) };
    }
    /** The present state. @throws ENV_NOT_RESET before the first reset. */
    get currentState() {
        if (this.state === undefined)
            throw this.notResetError();
        return this.state;
    }
    /** Renders the text of the observation. */
    render(_mode) {
        const state = this.currentState;
        return `${this.text.formatObservation(this.observe(state), this.describe(state))}\n`;
    }
    saveState() {
        return { state: this.state ?? null, isOver: this.isOver };
    }
    loadState(json) {
        const { state, isOver } = json;
        this.state = state ?? undefined;
        this.isOver = isOver;
    }
}
/** Formats the lines of previous guesses with the question for the next one. */
export function formatGuesses(lines, limit) {
    const guessesLeft = limit - (lines === "" ? 0 : lines.split("\n").length);
    const question = `${guessesLeft} ${guessesLeft === 1 ? "guess" : "guesses"} left. What is your guess?`;
    return lines === "" ? question : `${lines}\n${question}`;
}
/**
 * Parses a written command from a completion: the last line that starts with one of the
 * verbs, or else its only line. Characters outside `charset` become spaces. Returns undefined for none or a too long one.
 */
export function parseCommand(completion, { verbs, charset, maxLength }) {
    const lines = completion.split("\n").filter((line) => line.trim() !== "");
    const start = new RegExp(`^[\\s>*\`"-]*(?:(?:action|command)\\s*:\\s*)?((?:${verbs.join("|")})\\b.*)$`, "i");
    const commands = lines.flatMap((line) => start.exec(line)?.[1] ?? []);
    const command = commands.at(-1) ?? (lines.length === 1 ? lines[0] : "");
    const plain = Array.from(command, (character) => (charset.includes(character) ? character : " ")).join("");
    return plain.trim() === "" || plain.length > maxLength ? undefined : plain;
}
/** Letters, digits and the characters of arithmetic and prices. */
export const COMMAND_CHARSET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,+*/()%$'?!-";
