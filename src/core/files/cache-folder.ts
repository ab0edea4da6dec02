import { fs, system } from "#platform";

/**
 * Returns the folder of what llamagym keeps between processes and can compute again:
 * `LLAMAGYM_CACHE`, or llamagym/ in `XDG_CACHE_HOME` or ~/.cache. Models of the hub are in the
 * hub's own cache.
 */
export function getCacheFolder(): string {
  const { LLAMAGYM_CACHE: folder, XDG_CACHE_HOME: home } = system.env;
  if (folder !== undefined && folder !== "") return fs.resolve(folder);
  return fs.join(home === undefined || home === "" ? fs.join(system.homeFolder, ".cache") : home, "llamagym");
}
