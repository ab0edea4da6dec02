import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { andThen } from "../../core/maybe-promise.js";
import { Env, } from "../env.js";
/**
 * Makes an environment of a game: an opponent moves for the other seats within `reset` and `step`. The reward goes to
 * the agent's seat.
 * @throws INVALID_ARGUMENT for a seat that the game does not have
 */
export function asEnv(game, opponent, seat = "alternate") {
    return new GameEnv(game, opponent, seat);
}
/** A game against an opponent as an environment; `asEnv` creates it. */
export class GameEnv extends Env {
    game;
    opponent;
    agentSeat;
    observationSpace;
    actionSpace;
    metadata;
    text;
    seat = 0;
    isRunning = false;
    hasStarted = false;
    /** What the agent saw last, which also stands for the end of a game. */
    lastObservation;
    constructor(game, opponent, agentSeat) {
        super();
        this.game = game;
        this.opponent = opponent;
        this.agentSeat = agentSeat;
        if (agentSeat !== "alternate" && !(Number.isInteger(agentSeat) && agentSeat >= 0 && agentSeat < game.seats))
            throw invalidArgument(`${game.constructor.name} has the seats 0 to ${game.seats - 1}, or "alternate"; got ${JSON.stringify(agentSeat)}.`);
        this.observationSpace = game.observationSpace;
        this.actionSpace = game.actionSpace;
        this.metadata = game.metadata;
        this.text =
            agentSeat === "alternate" ? game.text : { ...game.text, systemPrompt: game.text.systemPromptOf(agentSeat) };
    }
    reset({ seed, options } = {}) {
        this.reseed(seed);
        this.seat = this.chooseSeat(seed !== undefined || !this.hasStarted);
        this.hasStarted = true;
        return andThen(this.game.reset({ seed, options }), (result) => andThen(this.playOthers({ result, reward: result.rewards[this.seat] }), (round) => {
            if (round.result.seat === undefined)
                throw new LlamaGymError("ENV_FAILED", `${this.toString()}: the game was over before the agent's first turn.`);
            this.isRunning = true;
            return { observation: this.observe(round), info: this.inform(round) };
        }));
    }
    step(action) {
        this.checkAction(action);
        if (!this.isRunning)
            throw new LlamaGymError("ENV_NOT_RESET", `${this.toString()}: no game is running. Call reset().`);
        return andThen(this.game.step(action), (result) => andThen(this.playOthers({ result, reward: result.rewards[this.seat] }), (round) => {
            const { terminated, truncated } = round.result;
            this.isRunning = !terminated && !truncated;
            return {
                observation: this.observe(round),
                reward: round.reward,
                terminated,
                truncated,
                info: this.inform(round),
            };
        }));
    }
    render(mode) {
        return this.game.render(mode);
    }
    close() {
        return this.game.close();
    }
    saveState() {
        const { seat, isRunning, hasStarted } = this;
        const observation = this.lastObservation === undefined ? null : this.observationSpace.encode(this.lastObservation);
        return { seat, isRunning, hasStarted, observation, game: this.game.getState() };
    }
    loadState(json) {
        const { seat, isRunning, hasStarted, observation, game } = json;
        this.seat = seat;
        this.isRunning = isRunning;
        this.hasStarted = hasStarted;
        this.lastObservation = observation === null ? undefined : this.observationSpace.decode(observation);
        this.game.setState(game);
    }
    chooseSeat(isFirst) {
        if (this.agentSeat !== "alternate")
            return this.agentSeat;
        return isFirst ? this.random.integers(0, this.game.seats) : (this.seat + 1) % this.game.seats;
    }
    /** Lets the opponent move until the agent is to move or the game is over. */
    playOthers(round) {
        const { seat, observation, info } = round.result;
        if (seat === undefined || seat === this.seat)
            return round;
        const turn = { seat, observation: observation, info, random: this.random };
        return andThen(this.opponent(turn), (action) => andThen(this.game.step(action), (result) => this.playOthers({ result, reward: round.reward + result.rewards[this.seat] })));
    }
    observe({ result }) {
        if (result.observation !== undefined)
            this.lastObservation = result.observation;
        return this.lastObservation;
    }
    inform({ result }) {
        return { ...result.info, seat: this.seat };
    }
}
