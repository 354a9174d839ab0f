import {
  type AdmissionPlugin,
  type ApiClient,
  type Authorizer,
  type KindDefinition,
  type ResourceRegistry,
  token,
} from '@keelson/core';
import type { PlaneStores } from '../storage/plane-stores.ts';

/** Names in the container for what a plane is made of, beside those of core. */
export const PlaneStoresToken = token<PlaneStores>('keelson.PlaneStores');
export const KindsToken = token<readonly KindDefinition[]>('keelson.Kinds');
export const AdmissionToken = token<readonly AdmissionPlugin[]>('keelson.Admission');
export const AuthorizerToken = token<Authorizer>('keelson.Authorizer');
export const RegistryToken = token<ResourceRegistry>('keelson.ResourceRegistry');
export const ApiClientToken = token<ApiClient>('keelson.ApiClient');
