import { type ApiClient, isStatusError, type Service, StatusReason } from '@keelson/core';
import { Namespace } from '@keelson/kinds';

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
