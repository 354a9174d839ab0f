import {
  always,
  filled,
  type Infer,
  type KubeObject,
  objectMetaSchema,
  optional,
  type Schema,
  s,
  typeMetaFields,
} from '@keelson/core';

const boundObjectReference = s.message(
  'k8s.io.api.authentication.v1.BoundObjectReference',
  'The object whose existence a token depends on.',
  {
    kind: optional(1, s.string(), 'Pod, Secret or Node.'),
    apiVersion: optional(2, s.string(), 'API version of the object.'),
    name: optional(3, s.string(), 'Name of the object.'),
    uid: optional(4, s.string(), 'UID of the object; a token for another object of the name is refused.'),
  },
);
export interface BoundObjectReference extends Infer<typeof boundObjectReference> {}
export const BoundObjectReferenceSchema: Schema<BoundObjectReference> = boundObjectReference;

const tokenRequestSpec = s.message('k8s.io.api.authentication.v1.TokenRequestSpec', 'The token that is requested.', {
  audiences: always(
    1,
    s.list(s.string(), { listType: 'atomic' }),
    'Recipients that accept the token; the API server when empty.',
  ),
  expirationSeconds: optional(4, s.int64(), 'Validity in seconds. The server may issue a shorter one.', {
    presence: true,
    default: 3600,
  }),
  boundObjectRef: optional(
    3,
    BoundObjectReferenceSchema,
    'Object with whose deletion the token becomes invalid, in addition to the service account.',
  ),
});
export interface TokenRequestSpec extends Infer<typeof tokenRequestSpec> {}
export const TokenRequestSpecSchema: Schema<TokenRequestSpec> = tokenRequestSpec;

const tokenRequestStatus = s.message('k8s.io.api.authentication.v1.TokenRequestStatus', 'The issued token.', {
  token: always(1, s.string(), 'The token.'),
  expirationTimestamp: always(2, s.time(), 'End of its validity.'),
});
export interface TokenRequestStatus extends Infer<typeof tokenRequestStatus> {}
export const TokenRequestStatusSchema: Schema<TokenRequestStatus> = tokenRequestStatus;

const tokenRequest = s.message('k8s.io.api.authentication.v1.TokenRequest', 'Requests a token of a service account.', {
  ...typeMetaFields,
  metadata: optional(1, objectMetaSchema, 'Name, namespace and UID of the service account, if they are to be checked.'),
  spec: always(2, TokenRequestSpecSchema, 'The request.'),
  status: filled(3, TokenRequestStatusSchema, 'The token, set by the server.'),
});
export interface TokenRequest extends KubeObject, Infer<typeof tokenRequest> {}
export const TokenRequestSchema: Schema<TokenRequest> = tokenRequest;
