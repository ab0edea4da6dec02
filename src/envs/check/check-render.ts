import { invalidEnv } from "../../core/errors.js";
import type { RenderMode, RgbImage } from "../env.js";
import { formatValue } from "../spaces/space.js";
import type { EnvProbe } from "./env-probe.js";

/** Checks that every declared mode renders a frame of its type. */
export async function checkRender(probe: EnvProbe): Promise<void> {
  const { env, warn } = probe;
  const modes: unknown = env.metadata?.renderModes;
  if (!Array.isArray(modes)) {
    warn("metadata.renderModes is not a list of modes. Declare [] if there is nothing to render.");
    return;
  }
  if (modes.length === 0) return;
  const fps = env.metadata.renderFps;
  if (fps === undefined) warn("metadata.renderFps is not declared, so the playback speed is unknown.");
  else if (typeof fps !== "number" || !(fps > 0)) {
    throw invalidEnv(`metadata.renderFps must be a number above 0, got ${formatValue(fps)}.`);
  }
  await probe.reset({ seed: 5 });
  for (const mode of modes as unknown[]) {
    if (mode !== "ansi" && mode !== "rgb_array") {
      warn(`The render mode ${formatValue(mode)} is not known: use "ansi" or "rgb_array".`);
    } else {
      checkFrame(await probe.render(mode), mode, warn);
    }
  }
}

function checkFrame(frame: unknown, mode: RenderMode, warn: (message: string) => void): void {
  if (mode === "ansi") {
    if (typeof frame !== "string") warn(`render("ansi") should return text, got ${typeof frame}`);
    return;
  }
  const { width, height, data } = (frame ?? {}) as Partial<RgbImage>;
  const isImage = Number.isInteger(width) && Number.isInteger(height) && data instanceof Uint8Array;
  if (!isImage) warn('render("rgb_array") should give { width, height, data } with data a Uint8Array.');
  else if (data.length !== 3 * Number(width) * Number(height)) {
    warn(`render("rgb_array") should return three bytes for each of ${width} x ${height} pixels, got ${data.length}.`);
  }
}
