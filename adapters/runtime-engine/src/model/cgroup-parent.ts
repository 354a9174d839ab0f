/**
 * The parent cgroup of a pod's containers in the form that an engine with this cgroup driver accepts. An engine with
 * the `systemd` driver accepts only the name of a slice: for other groups the result is undefined, and the engine
 * selects the parent itself.
 */
export function cgroupParentOf(driver: string | undefined, path: string | undefined): string | undefined {
  if (path === undefined || driver !== 'systemd') return path;
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name.endsWith('.slice') ? name : undefined;
}
