/**
 * The parent of a pod's containers in the words of an engine with this cgroup driver. One with `systemd` takes the name
 * of a slice in place of a path, and nothing else: for other groups this is undefined, and the engine places the
 * containers itself.
 */
export function cgroupParentOf(driver: string | undefined, path: string | undefined): string | undefined {
  if (path === undefined || driver !== 'systemd') return path;
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name.endsWith('.slice') ? name : undefined;
}
