import { invalidArgument } from "../../core/errors.js";
import { andThen } from "../../core/maybe-promise.js";
import { readCounts } from "../env-options.js";
import { PassThroughWrapper } from "../wrapper.js";
const EMPTY_STATE = { running: 0, returns: [] };
/** Moves an environment's level by the mean return of its episodes at that level. */
export class CurriculumWrapper extends PassThroughWrapper {
    leveled;
    wrapperState = EMPTY_STATE;
    increaseAbove;
    decreaseBelow;
    episodes;
    constructor(leveled, { increaseAbove = 0.7, decreaseBelow = 0.1, ...options } = {}) {
        super(leveled);
        this.leveled = leveled;
        if (!(decreaseBelow <= increaseAbove))
            throw invalidArgument(`CurriculumWrapper: decreaseBelow must be at most increaseAbove, got ${decreaseBelow} and ${increaseAbove}.`);
        this.increaseAbove = increaseAbove;
        this.decreaseBelow = decreaseBelow;
        this.episodes = readCounts("CurriculumWrapper", options, { episodes: [20, 1, 100_000] }).episodes;
    }
    step(action) {
        return andThen(this.leveled.step(action), (result) => {
            const running = this.wrapperState.running + result.reward;
            if (result.terminated || result.truncated)
                this.finishEpisode(running);
            else
                this.wrapperState = { ...this.wrapperState, running };
            return result;
        });
    }
    finishEpisode(total) {
        const returns = [...this.wrapperState.returns, total];
        this.wrapperState = returns.length < this.episodes ? { running: 0, returns } : EMPTY_STATE;
        if (returns.length < this.episodes)
            return;
        const mean = returns.reduce((sum, value) => sum + value, 0) / returns.length;
        const { level, maxLevel } = this.leveled;
        if (mean > this.increaseAbove)
            this.leveled.level = Math.min(level + 1, maxLevel);
        else if (mean < this.decreaseBelow)
            this.leveled.level = Math.max(level - 1, 0);
    }
}
