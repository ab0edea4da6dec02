import "./register.js";

export { TextWorldGame, type EntityInfo } from "./game.js";
export { parseGame } from "./parse-game.js";
export { HouseGame } from "./house/house-game.js";
export { makeHouse, type HouseOptions } from "./house/make-house.js";
export { readStoryFiles, type StoryFiles } from "./story-files.js";
export { StoryGame, type StoryGameOptions } from "./story-game.js";
export { INFO_NAMES, type GameState, type InfoName, type RequestedInfos, type TextGame } from "./text-game.js";
export { TextWorldEnv, type TextWorldOptions } from "./text-world-env.js";
export { textWorldText, cleanFeedback } from "./text-world-text.js";
