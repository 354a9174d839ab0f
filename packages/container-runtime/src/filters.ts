import type { Container, ContainerFilter } from './container.ts';
import type { PodSandbox, SandboxFilter } from './sandbox.ts';

function hasLabels(
  labels: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>> | undefined,
): boolean {
  if (wanted === undefined) return true;
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

/** True when the sandbox meets all conditions of the filter. */
export function matchesSandbox(sandbox: PodSandbox, filter: SandboxFilter = {}): boolean {
  if (filter.id !== undefined && filter.id !== sandbox.id) return false;
  if (filter.state !== undefined && filter.state !== sandbox.state) return false;
  return hasLabels(sandbox.labels, filter.labels);
}

/** True when the container meets all conditions of the filter. */
export function matchesContainer(container: Container, filter: ContainerFilter = {}): boolean {
  if (filter.id !== undefined && filter.id !== container.id) return false;
  if (filter.state !== undefined && filter.state !== container.state) return false;
  if (filter.sandboxId !== undefined && filter.sandboxId !== container.sandboxId) return false;
  return hasLabels(container.labels, filter.labels);
}
