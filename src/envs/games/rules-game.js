import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { PythonRandom } from "../../core/random/python-random.js";
import { applyDefaults } from "../env-options.js";
import { createSeededStream } from "../seeded-stream.js";
import { Text } from "../spaces/index.js";
import { findLastNamed } from "../text-parsing.js";
import { Game } from "./game.js";
const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("");
const MAX_OBSERVATION = 1000;
/**
 * A game for two given by its rules: positions are JSON values, actions are numbered, observations are texts. Chance
 * draws from Python's random numbers, so that a seed gives the games of TextArena.
 */
export class RulesGame extends Game {
    metadata = { renderModes: ["ansi"], renderFps: 2 };
    seats = 2;
    observationSpace = new Text(MAX_OBSERVATION, { charset: `${PRINTABLE}\n` });
    illegalMoves;
    stream;
    position;
    isWarned = false;
    forfeitedBy;
    /** @throws INVALID_ARGUMENT for an unknown option or value */
    constructor(options = {}) {
        super();
        const { illegalMoves } = applyDefaults(this.constructor.name, options, { illegalMoves: "lose" });
        if (illegalMoves !== "lose" && illegalMoves !== "retry")
            throw invalidArgument(`${this.constructor.name}: option illegalMoves must be "lose" or "retry", got ${JSON.stringify(illegalMoves)}.`);
        this.illegalMoves = illegalMoves;
    }
    /** Lists the first positions with their probabilities, for exact evaluation; undefined where they are too many. */
    listStarts() {
        return undefined;
    }
    /** Random stream of the game; seeded from entropy until a seed is passed. */
    get random() {
        return (this.stream ??= new PythonRandom(createSeededStream().seed));
    }
    /** The present position. @throws ENV_NOT_RESET before the first reset. */
    get currentPosition() {
        if (this.position !== undefined)
            return this.position;
        throw new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: call reset() before step() and render().`);
    }
    reset({ seed } = {}) {
        if (seed !== undefined)
            this.stream = new PythonRandom(createSeededStream(seed).seed);
        this.position = this.start();
        this.isWarned = false;
        this.forfeitedBy = undefined;
        return this.describe([0, 0]);
    }
    step(action) {
        const position = this.currentPosition;
        const seat = this.getSeat(position);
        if (seat === undefined || this.forfeitedBy !== undefined)
            throw new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: the game is over. Call reset().`);
        if (action === undefined || !this.listActions(position).includes(action))
            return this.refuse(seat);
        this.isWarned = false;
        this.position = this.next(position, action);
        const before = this.getReturns(position);
        return this.describe(this.getReturns(this.position).map((value, i) => value - before[i]));
    }
    render(_mode) {
        return this.draw(this.currentPosition);
    }
    /** Draws a position for terminals. */
    draw(position) {
        return this.observe(position, this.getSeat(position) ?? 0);
    }
    getState() {
        const { position = null, isWarned, forfeitedBy = null } = this;
        return { random: this.random.getState(), position, isWarned, forfeitedBy };
    }
    setState(state) {
        const saved = state;
        this.random.setState(saved.random);
        this.position = saved.position ?? undefined;
        this.isWarned = saved.isWarned;
        this.forfeitedBy = saved.forfeitedBy ?? undefined;
    }
    refuse(seat) {
        if (this.illegalMoves === "retry" && !this.isWarned) {
            this.isWarned = true;
            return this.describe([0, 0], { illegal: seat });
        }
        this.forfeitedBy = seat;
        return this.describe([0, 1].map((other) => (other === seat ? -1 : 1)), { illegal: seat });
    }
    describe(rewards, extra = {}) {
        const position = this.currentPosition;
        const seat = this.forfeitedBy === undefined ? this.getSeat(position) : undefined;
        if (seat === undefined)
            return { seat, observation: undefined, info: extra, rewards, terminated: true, truncated: false };
        return {
            seat,
            observation: this.observe(position, seat),
            info: { legalActions: [...this.listActions(position)], ...extra },
            rewards,
            terminated: false,
            truncated: false,
        };
    }
}
/** Creates the text interface of numbered actions, whose legal ones are the choices. */
export function createGameText(systemPrompt, names, parse = (completion) => findLastNamed(completion, names)) {
    return {
        systemPrompt,
        systemPromptOf: () => systemPrompt,
        // Observations tell all that a player knows.
        historyTurns: 0,
        formatObservation: (observation) => observation,
        parseAction: parse,
        formatAction: (action) => names[action],
        choices: (_observation, info) => (info.legalActions ?? []).map((action) => names[action]),
    };
}
