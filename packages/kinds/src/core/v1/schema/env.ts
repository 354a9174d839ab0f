import { always, type Infer, inline, optional, type Schema, s } from '@keelson/core';
import {
  ConfigMapKeySelectorSchema,
  FileKeySelectorSchema,
  ObjectFieldSelectorSchema,
  ResourceFieldSelectorSchema,
  SecretKeySelectorSchema,
} from './key-selectors.ts';
import { LocalObjectReferenceSchema } from './references.ts';

const envVarSource = s.message(
  'k8s.io.api.core.v1.EnvVarSource',
  'Where the value of an environment variable comes from; exactly one field is set.',
  {
    fieldRef: optional(1, ObjectFieldSelectorSchema, 'A field of the pod.'),
    resourceFieldRef: optional(2, ResourceFieldSelectorSchema, 'A resource request or limit of a container.'),
    configMapKeyRef: optional(3, ConfigMapKeySelectorSchema, 'An entry of a ConfigMap.'),
    secretKeyRef: optional(4, SecretKeySelectorSchema, 'An entry of a Secret.'),
    fileKeyRef: optional(5, FileKeySelectorSchema, 'A variable in a file.'),
  },
);
export interface EnvVarSource extends Infer<typeof envVarSource> {}
export const EnvVarSourceSchema: Schema<EnvVarSource> = envVarSource;

const envVar = s.message('k8s.io.api.core.v1.EnvVar', 'One environment variable.', {
  name: always(1, s.string(), 'Name of the variable.'),
  value: optional(2, s.string(), 'Value; $(NAME) stands for an earlier variable, $$(NAME) for the text itself.'),
  valueFrom: optional(3, EnvVarSourceSchema, 'Source of the value; not together with value.'),
});
export interface EnvVar extends Infer<typeof envVar> {}
export const EnvVarSchema: Schema<EnvVar> = envVar;

const configMapEnvSource = s.message('k8s.io.api.core.v1.ConfigMapEnvSource', 'All entries of a ConfigMap.', {
  localObjectReference: inline(1, LocalObjectReferenceSchema),
  optional: optional(2, s.bool(), 'True lets the container start although the ConfigMap is missing.', {
    presence: true,
  }),
});
export interface ConfigMapEnvSource extends Infer<typeof configMapEnvSource> {}
export const ConfigMapEnvSourceSchema: Schema<ConfigMapEnvSource> = configMapEnvSource;

const secretEnvSource = s.message('k8s.io.api.core.v1.SecretEnvSource', 'All entries of a Secret.', {
  localObjectReference: inline(1, LocalObjectReferenceSchema),
  optional: optional(2, s.bool(), 'True lets the container start although the Secret is missing.', { presence: true }),
});
export interface SecretEnvSource extends Infer<typeof secretEnvSource> {}
export const SecretEnvSourceSchema: Schema<SecretEnvSource> = secretEnvSource;

const envFromSource = s.message(
  'k8s.io.api.core.v1.EnvFromSource',
  'Environment variables from a whole ConfigMap or Secret.',
  {
    prefix: optional(1, s.string(), 'Text put before every name.'),
    configMapRef: optional(2, ConfigMapEnvSourceSchema, 'A ConfigMap.'),
    secretRef: optional(3, SecretEnvSourceSchema, 'A Secret.'),
  },
);
export interface EnvFromSource extends Infer<typeof envFromSource> {}
export const EnvFromSourceSchema: Schema<EnvFromSource> = envFromSource;
