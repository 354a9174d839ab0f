import { type ApiClient, isStatusError, StatusReason } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import { Namespace } from '@keelson/kinds';

/** Longest interval of a timer. */
const longestIntervalMs = 2 ** 31 - 1;

/**
 * Keeps the process alive while the plane runs. The timers of the plane do not, so a program that only waits for a
 * watch or a controller would exit.
 */
export function processAnchor(): Service {
  let timer: NodeJS.Timeout | undefined;
  return {
    name: 'process-anchor',
    start: async () => {
      timer = setInterval(() => {}, longestIntervalMs);
    },
    stop: async () => clearInterval(timer),
  };
}

const names = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** Creates the namespaces that clients rely on. */
export function systemNamespaces(client: ApiClient): Service {
  return {
    name: 'system-namespaces',
    start: async () => {
      const namespaces = client.resource(Namespace);
      await Promise.all(
        names.map((name) =>
          namespaces.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }).catch((error: unknown) => {
            if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
          }),
        ),
      );
    },
    stop: async () => {},
  };
}
