import { LlamaGymError } from "../../core/errors.js";
import { LevelBuilder, LevelRejected } from "./level-builder.js";
import { LEVELS } from "./levels.js";
import { buildMixed, isMixedValid, MIXED_KINDS } from "./mixed-levels.js";
import { countNavigations, formatMission, isPutValid, startGoal } from "./mission.js";
/** Names of the levels: minigrid's, and GLAM's two mixed ones. */
export const LEVEL_NAMES = [...Object.keys(LEVELS), "MixedTrainLocal", "MixedTestLocal"];
const MAX_REJECTIONS = 1000;
/**
 * Draws a level by its name; `kind` is the task of a mixed level, drawn if it is not given.
 * @throws ENV_FAILED when too many draws in a row are not valid
 */
export function drawLevel(name, random, kind) {
    const attempt = Object.hasOwn(LEVELS, name)
        ? () => buildLevel(LEVELS[name], random)
        : () => drawMixed(random, kind ?? random.choice(MIXED_KINDS), name === "MixedTestLocal");
    return untilValid(name, () => {
        const { level, mission, maxSteps } = attempt();
        const { world, layout } = level;
        if (!isPutValid(world, layout, mission))
            throw new LevelRejected();
        return {
            world,
            goal: startGoal(world, layout, mission),
            mission: formatMission(world, layout, mission),
            maxSteps: maxSteps ?? countSteps(layout, mission),
        };
    });
}
function buildLevel({ layout, build, maxSteps }, random) {
    const level = new LevelBuilder(random, layout);
    return { level, mission: build(level), maxSteps };
}
/** Draws a mixed level until its sentence fits. GLAM lays the rooms once more before the first draw. */
function drawMixed(random, kind, isTest) {
    const layout = { size: 8, columns: kind === "open" ? 2 : 1, rows: 1 };
    void new LevelBuilder(random, layout);
    for (let i = 0; i < MAX_REJECTIONS; i++) {
        const level = new LevelBuilder(random, layout);
        const mission = buildMixed(level, kind, isTest);
        if (isMixedValid(level, mission, isTest))
            return { level, mission };
    }
    throw new LevelRejected();
}
function untilValid(name, attempt) {
    for (let i = 0; i < MAX_REJECTIONS; i++) {
        try {
            return attempt();
        }
        catch (error) {
            if (!(error instanceof LevelRejected))
                throw error;
        }
    }
    throw new LlamaGymError("ENV_FAILED", `BabyAI rejected ${MAX_REJECTIONS} draws of level ${name} in a row.`);
}
function countSteps({ size, columns, rows }, mission) {
    return size ** 2 * columns * rows * countNavigations(mission);
}
