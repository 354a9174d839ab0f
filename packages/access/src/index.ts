export { AuditLog, type AuditLogOptions, type AuditMode, auditModes } from './audit/audit-log.ts';
export { type AuditEvent, type AuditSink, encodedEvent, eventBytes } from './audit/audit-sink.ts';
export { type EventQuery, type FoundEvent, findEvents } from './audit/find-events.ts';
export { type Audit, type AuditOptions, openAudit } from './audit/open-audit.ts';
export {
  Authentication,
  type AuthenticationOptions,
  type ServerAuthentication,
} from './authentication/authentication.ts';
export { issuerProblem, parseAuthenticationConfig } from './authentication/authentication-config.ts';
export { bootstrapTokenCleaner } from './authentication/bootstrap-token-cleaner.ts';
export { bootstrapTokenEnd, bootstrapTokens } from './authentication/bootstrap-tokens.ts';
export { type JwtIssuer, jwtAlgorithms } from './authentication/oidc.ts';
export {
  type AnonymousAccess,
  type AuthenticateRequest,
  defaultAnonymousAccess,
  parseCertificates,
} from './authentication/request-authentication.ts';
export type { RequestHeaders } from './authentication/request-credentials.ts';
export type { TokenAuthenticator } from './authentication/token-chain.ts';
export { type KnownToken, parseTokenFile, tokenUsers } from './authentication/token-file.ts';
export type { TokenWebhook } from './authentication/token-webhook.ts';
export { WatchedFile } from './authentication/watched-file.ts';
export { bootstrapPolicy } from './authorization/bootstrap-policy.ts';
export { BootstrapRoles } from './authorization/bootstrap-roles.ts';
export { alwaysAllow, authorizerChain } from './authorization/chain.ts';
export { rbacEscalation } from './authorization/escalation.ts';
export { policyAuthorizer, readPolicyFile } from './authorization/policy-file.ts';
export { allowingRule, RbacAuthorizer } from './authorization/rbac-authorizer.ts';
export { type KeptBinding, keepBinding, RbacIndex } from './authorization/rbac-index.ts';
export { RbacInformers } from './authorization/rbac-informers.ts';
export { rulesAllow } from './authorization/rules.ts';
export { WebhookAuthorizer, type WebhookAuthorizerOptions } from './authorization/webhook-authorizer.ts';
export { Encryption, type EncryptionOptions } from './encryption/encryption.ts';
export { NodeAuthorizer } from './node/node-authorizer.ts';
export { nodeRestriction } from './node/node-restriction.ts';
export type { IssuerDocuments } from './service-accounts/issuer-documents.ts';
export {
  createServiceAccounts,
  defaultIssuer,
  type ServiceAccountOptions,
  type ServiceAccounts,
} from './service-accounts/service-accounts.ts';
export { readSigningKey, readVerificationKeys } from './service-accounts/signing-keys.ts';
