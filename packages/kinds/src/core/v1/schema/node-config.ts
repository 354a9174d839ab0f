import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const configMapNodeConfigSource = s.message(
  'k8s.io.api.core.v1.ConfigMapNodeConfigSource',
  'A ConfigMap that configures node agents which take their configuration from here.',
  {
    namespace: always(1, s.string(), 'Namespace of the ConfigMap.'),
    name: always(2, s.string(), 'Name of the ConfigMap.'),
    uid: optional(3, s.string(), 'UID of the ConfigMap; only in the status.'),
    resourceVersion: optional(4, s.string(), 'Version of the ConfigMap; only in the status.'),
    kubeletConfigKey: always(5, s.string(), 'Key under which the configuration stands.'),
  },
);
export interface ConfigMapNodeConfigSource extends Infer<typeof configMapNodeConfigSource> {}
export const ConfigMapNodeConfigSourceSchema: Schema<ConfigMapNodeConfigSource> = configMapNodeConfigSource;

const nodeConfigSource = s.message(
  'k8s.io.api.core.v1.NodeConfigSource',
  'Source of the configuration of a node agent with dynamic configuration.',
  {
    configMap: optional(2, ConfigMapNodeConfigSourceSchema, 'A ConfigMap.'),
  },
);
export interface NodeConfigSource extends Infer<typeof nodeConfigSource> {}
export const NodeConfigSourceSchema: Schema<NodeConfigSource> = nodeConfigSource;
