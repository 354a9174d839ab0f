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

const secret = s.message(
  'k8s.io.api.core.v1.Secret',
  'Confidential data for pods: values under keys, at most 1 MiB in all.',
  {
    immutable: optional(5, s.bool(), 'True forbids every later change of the data; it cannot be taken back.', {
      presence: true,
    }),
    data: optional(
      2,
      s.map(s.bytes()),
      'Values by key, base64 in JSON; keys consist of letters, digits, `-`, `_` and `.`.',
    ),
    stringData: optional(
      4,
      s.map(s.string()),
      'Values given as plain text. Written into data when stored, never returned.',
    ),
    type: optional(3, s.string(), 'What the data is for and which keys it must have; cannot be changed later.', {
      default: 'Opaque',
    }),
  },
);
export interface Secret extends KubeObject, Infer<typeof secret> {}
export const SecretSchema: Schema<Secret> = secret;
