import {
  type AdmissionPlugin,
  type ApiClient,
  type Authorizer,
  type ContinueTokens,
  type KindDefinition,
  type ResourceRegistry,
  type ResourceStorages,
  token,
} from '@keelson/core';

/** Names in the container for what a plane is made of, beside those of core. */
export const StoragesToken = token<ResourceStorages>('keelson.ResourceStorages');
export const ContinueTokensToken = token<ContinueTokens>('keelson.ContinueTokens');
export const KindsToken = token<readonly KindDefinition[]>('keelson.Kinds');
export const AdmissionToken = token<readonly AdmissionPlugin[]>('keelson.Admission');
export const AuthorizerToken = token<Authorizer>('keelson.Authorizer');
export const RegistryToken = token<ResourceRegistry>('keelson.ResourceRegistry');
export const ApiClientToken = token<ApiClient>('keelson.ApiClient');
