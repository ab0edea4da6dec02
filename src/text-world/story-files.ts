import { fs } from "#platform";
import { errorMessage, LlamaGymError } from "../core/errors.js";
import type { TextWorldGame } from "./game.js";
import { parseGame } from "./parse-game.js";
import { Story } from "./zmachine/story.js";

/** Limit for untrusted files; TextWorld's stay below 1 MB. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A game as TextWorld saves it: the story file and the .json file with its description. */
export interface StoryFiles {
  readonly story: Story;
  readonly game: TextWorldGame;
}

/**
 * Reads `NAME.z8` and the `NAME.json` next to it; `path` may name either.
 * @throws FILE_NOT_FOUND, FILE_CORRUPT or FORMAT_UNSUPPORTED, naming the file
 */
export function readStoryFiles(path: string): StoryFiles {
  const stem = path.replace(/\.(json|z\d)$/i, "");
  const storyPath = /\.z\d$/i.test(path) ? path : `${stem}.z8`;
  const gamePath = `${stem}.json`;
  const story = readBytes(storyPath, "the story file that tw-make writes");
  const game = readBytes(gamePath, "the description of the game that tw-make writes next to its story");
  return {
    story: new Story(story, fs.basename(storyPath)),
    game: parseGame(new TextDecoder().decode(game), fs.basename(gamePath)),
  };
}

function readBytes(path: string, description: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = fs.readBytesSync(path);
  } catch (error) {
    const reason = errorMessage(error);
    throw new LlamaGymError("FILE_NOT_FOUND", `Cannot read ${path}, ${description} (${reason}).`, { cause: error });
  }
  if (bytes.length <= MAX_BYTES) return bytes;
  throw new LlamaGymError("FILE_CORRUPT", `${path} has ${bytes.length} bytes; TextWorld's files stay below 1 MB.`);
}
