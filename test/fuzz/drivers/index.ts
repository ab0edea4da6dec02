import type { Driver } from "../driver.js";
import { checkpoints } from "./checkpoints.js";
import { hub } from "./hub.js";
import { kills } from "./kills.js";
import { readers } from "./readers.js";
import { sampler } from "./sampler.js";
import { schemas } from "./schemas.js";
import { specifications } from "./specifications.js";
import { templates } from "./templates.js";

/** All drivers, by the names of `--only`. */
export const drivers: Readonly<Record<string, Driver>> = {
  readers,
  templates,
  specifications,
  schemas,
  hub,
  kills,
  checkpoints,
  sampler,
};
