import { invalidArgument } from "../../core/errors.js";
import { applyDefaults } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import { createChoiceText } from "../text-parsing.js";
import { TaskEnv } from "./task-env.js";
/** From the best-sounding to the worst-sounding name. */
const NAMES = [
    "Golden Goose",
    "Lucky Clover",
    "Rich Uncle",
    "Steady Mill",
    "Old Bucket",
    "Rusty Anchor",
    "Broken Wheel",
    "Cursed Well",
];
const MIN_PAYOUT_PROBABILITY = 0.2;
const MAX_PAYOUT_PROBABILITY = 0.8;
/**
 * Pull the arms of a slot machine whose names mislead (after the bandits of RAGEN, Wang et al. 2025).
 * Observation: pulls and coins so far, one row per arm. Actions: the arms. Reward: 1 per coin.
 */
export class BanditEnv extends TaskEnv {
    observationSpace;
    actionSpace;
    text;
    arms;
    pulls;
    names;
    constructor(options = {}) {
        super();
        const defaults = { arms: 2, pulls: 10, names: "misleading" };
        const { arms, pulls, names } = applyDefaults("Bandit", options, defaults);
        const isValid = Number.isInteger(arms) && arms >= 2 && arms <= NAMES.length;
        if (!isValid || !Number.isInteger(pulls) || pulls < 1 || !["misleading", "honest", "random"].includes(names))
            throw invalidArgument(`Bandit takes 2 to ${NAMES.length} arms, at least 1 pull and names "misleading", "honest" or "random"; ` +
                `got arms ${arms}, pulls ${pulls}, names "${names}".`);
        this.arms = arms;
        this.pulls = pulls;
        this.names = names;
        this.observationSpace = new Box(0, pulls, { shape: [arms, 2], dtype: "int32" });
        this.actionSpace = new Discrete(arms);
        this.text = createBanditText(selectArmNames(arms), pulls);
    }
    start() {
        const { arms, names, random } = this;
        const chances = Array.from({ length: arms }, (_, i) => MIN_PAYOUT_PROBABILITY + ((MAX_PAYOUT_PROBABILITY - MIN_PAYOUT_PROBABILITY) * i) / (arms - 1));
        if (names === "honest")
            chances.reverse();
        if (names === "random")
            random.shuffle(chances);
        const zeros = Array.from({ length: arms }, () => 0);
        return { chances: chances, pulls: zeros, coins: zeros };
    }
    observe({ pulls, coins }) {
        return Int32Array.from(pulls.flatMap((count, arm) => [count, coins[arm]]));
    }
    advance({ chances, pulls, coins }, arm) {
        const reward = this.random.random() < chances[arm] ? 1 : 0;
        const state = { chances, pulls: pulls.with(arm, pulls[arm] + 1), coins: coins.with(arm, coins[arm] + reward) };
        return { state, reward, terminated: state.pulls.reduce((sum, count) => sum + count, 0) >= this.pulls };
    }
}
/** Selects evenly spaced names from best-sounding to worst-sounding. */
function selectArmNames(arms) {
    return Array.from({ length: arms }, (_, i) => NAMES[Math.round((i * (NAMES.length - 1)) / (arms - 1))]);
}
function createBanditText(names, pulls) {
    return createChoiceText({
        systemPrompt: `A slot machine has ${names.length} arms: ${names.join(", ")}. Each pays a coin or nothing. Win as many coins as you can in ${pulls} pulls. Answer with the name of an arm.`,
        formatObservation: (observation) => {
            const left = pulls - names.reduce((sum, _, arm) => sum + observation[2 * arm], 0);
            const record = names.map((name, arm) => {
                const [count, coins] = [observation[2 * arm], observation[2 * arm + 1]];
                return count === 0 ? `${name}: not pulled yet.` : `${name}: ${coins} coins in ${count} pulls.`;
            });
            return `${record.join(" ")} ${left} pulls left. Which arm do you pull?`;
        },
        names,
    });
}
export const banditEnvs = [
    {
        id: "Bandit-v0",
        entryPoint: (options) => new BanditEnv(options),
        summary: "choose between arms with misleading names",
        knownReturns: { random: 5, best: 8, basis: "page" },
    },
];
