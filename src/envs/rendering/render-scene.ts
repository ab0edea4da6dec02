import { invalidArgument } from "../../core/errors.js";
import type { RenderFrame, RenderMode } from "../env.js";
import { drawPixels } from "./draw-pixels.js";
import { drawText } from "./draw-text.js";
import type { Scene } from "./scene.js";

/** Renders a scene in a mode. */
export function renderScene(mode: RenderMode, scene: Scene): RenderFrame {
  if (mode === "ansi") return drawText(scene);
  if (mode === "rgb_array") return drawPixels(scene);
  throw invalidArgument(`Render mode must be "ansi" or "rgb_array", got "${String(mode)}".`);
}
