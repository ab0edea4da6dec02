import { LlamaGymError } from "../../core/errors.js";
import type { RenderFrame, RenderMode } from "../env.js";
import { drawPixels } from "./draw-pixels.js";
import { drawText } from "./draw-text.js";
import type { Scene } from "./scene.js";

/** A scene in the mode that was asked for. */
export function renderScene(mode: RenderMode, scene: Scene): RenderFrame {
  if (mode === "ansi") return drawText(scene);
  if (mode === "rgb_array") return drawPixels(scene);
  throw new LlamaGymError("INVALID_ARGUMENT", `Render mode "${String(mode)}" is not one of "ansi" and "rgb_array".`);
}
