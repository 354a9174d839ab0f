import { type ApiClient, isStatusError, type Service, StatusReason } from '@keelson/core';
import { Namespace } from '@keelson/kinds';

/** Longest interval that timers take. */
const forever = 2 ** 31 - 1;

/**
 * Keeps the process alive as long as the plane runs. Timers of the plane do not, so without this a program that waits
 * for nothing but the plane (a watch, a controller) would end in the middle.
 */
export function processAnchor(): Service {
  let timer: NodeJS.Timeout | undefined;
  return {
    name: 'process-anchor',
    start: async () => {
      timer = setInterval(() => {}, forever);
    },
    stop: async () => clearInterval(timer),
  };
}

const names = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** Sees to it that the namespaces exist that every client takes for granted. */
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
