import type { ContainerRuntime } from '@keelson/container-runtime';
import type { NetworkConfig } from '../../base/config/agent-config.ts';
import { UsageError } from '../../base/usage-error.ts';

/**
 * A plugin that nobody would call is refused, rather than a node whose pods are on the machine's network against what
 * was asked for.
 *
 * @throws UsageError
 */
export function requirePodNetwork(
  { plugin }: Pick<NetworkConfig, 'plugin'>,
  runtime: Pick<ContainerRuntime, 'name' | 'capabilities'>,
): void {
  if (plugin === '' || runtime.capabilities.podNetwork) return;
  throw new UsageError(
    `--network-plugin=${plugin} needs a runtime whose pods have a network of their own; those of the runtime ${runtime.name} are on the machine's`,
  );
}
