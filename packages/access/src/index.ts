export { authentication, clientCertificates } from './authentication/authentication.ts';
export { anyToken, tokenUsers } from './authentication/bearer-tokens.ts';
export { type KnownToken, parseTokenFile, readTokenFile } from './authentication/token-file.ts';
export { groupAuthorizer } from './authorization/group-authorizer.ts';
export { rulesAllow } from './authorization/rules.ts';
export { nodeRestriction } from './node/node-restriction.ts';
export type { IssuerDocuments } from './service-accounts/issuer-documents.ts';
export {
  createServiceAccounts,
  defaultIssuer,
  type ServiceAccountOptions,
  type ServiceAccounts,
} from './service-accounts/service-accounts.ts';
