import { type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const configMap = s.message(
  'k8s.io.api.core.v1.ConfigMap',
  'Configuration data for pods: text and binary values under keys, at most 1 MiB in all.',
  {
    immutable: optional(4, s.bool(), 'True forbids every later change of the data; it cannot be taken back.', {
      presence: true,
    }),
    data: optional(2, s.map(s.string()), 'UTF-8 values by key; keys consist of letters, digits, `-`, `_` and `.`.'),
    binaryData: optional(3, s.map(s.bytes()), 'Arbitrary bytes by key, base64 in JSON; no key may also be in data.'),
  },
);
export interface ConfigMap extends KubeObject, Infer<typeof configMap> {}
export const ConfigMapSchema: Schema<ConfigMap> = configMap;
