import type { AdmissionPlugin } from '@keelson/core';
import type { Pod } from '@keelson/kinds';

const keys = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
/** Time in which a node may come back before its pods are evicted. */
const tolerationSeconds = 300;

/** Pods tolerate a node that is not ready or unreachable for five minutes, unless they state a time themselves. */
export const defaultTolerations: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  resources: ['pods'],
  handles: ({ operation, subresource }) => operation === 'create' && subresource === undefined,
  mutate: ({ object }) => {
    const { spec } = object as Pod;
    const given = spec.tolerations ?? [];
    const missing = keys.filter(
      (missed) =>
        !given.some(
          ({ key = '', effect = '' }) => (key === '' || key === missed) && (effect === '' || effect === 'NoExecute'),
        ),
    );
    if (missing.length === 0) return;
    const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }));
    spec.tolerations = [...given, ...added];
  },
};
