import { type Infer, optional, s, typeMetaFields } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { parseConfig } from '../read-config.ts';
import { type ClaimMapping, type JwtIssuer, jwtAlgorithms } from './oidc.ts';
import { type AnonymousAccess, parseCertificates } from './request-authentication.ts';

/** Content of an AuthenticationConfiguration. */
export interface AuthenticationConfig {
  readonly jwt: readonly JwtIssuer[];
  /** Anonymous access; undefined when the file does not configure it. */
  readonly anonymous: AnonymousAccess | undefined;
}

const maxIssuers = 64;
const versions = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`);

const text = s.string();
const name = (kind: string) => `keelson.authentication.${kind}`;
const expressionField = optional(undefined, text, 'CEL; only claims.NAME is evaluated.');

const prefixedSchema = s.message(name('PrefixedClaim'), 'A claim whose values get a prefix.', {
  claim: optional(undefined, text, 'Name of the claim.'),
  prefix: optional(undefined, text, 'Required with claim; empty for none.'),
  expression: expressionField,
});

const mappingsSchema = s.message(name('ClaimMappings'), 'The claims of which a user consists.', {
  username: optional(undefined, prefixedSchema, 'Name of the user.'),
  groups: optional(undefined, prefixedSchema, 'Groups of the user.'),
  uid: optional(
    undefined,
    s.message(name('Claim'), 'A claim.', {
      claim: optional(undefined, text, 'Name of the claim.'),
      expression: expressionField,
    }),
    'UID of the user.',
  ),
  extra: optional(
    undefined,
    s.list(
      s.message(name('Extra'), 'An extra attribute.', {
        key: optional(undefined, text, 'Name, with a domain.'),
        valueExpression: expressionField,
      }),
    ),
    'Extra attributes of the user.',
  ),
});

const issuerSchema = s.message(name('Issuer'), 'An issuer of tokens.', {
  issuer: optional(
    undefined,
    s.message(name('IssuerAddress'), 'Where the issuer is, and for whom its tokens are.', {
      url: optional(undefined, text, 'Value of the claim iss.'),
      discoveryURL: optional(undefined, text, 'Address of the discovery document, if it is another one.'),
      certificateAuthority: optional(undefined, text, 'Authorities of the address, PEM.'),
      audiences: optional(undefined, s.list(text), 'Accepted values of the claim aud.'),
      audienceMatchPolicy: optional(undefined, text, 'MatchAny.'),
    }),
    'The issuer.',
  ),
  claimValidationRules: optional(
    undefined,
    s.list(
      s.message(name('ClaimRule'), 'A claim that tokens must have.', {
        claim: optional(undefined, text, 'Name of the claim.'),
        requiredValue: optional(undefined, text, 'Its value.'),
        expression: optional(undefined, s.any(), 'Not supported.'),
        message: optional(undefined, text, 'For expressions.'),
      }),
    ),
    'Claims that tokens must have.',
  ),
  claimMappings: optional(undefined, mappingsSchema, 'The claims of which a user consists.'),
  userValidationRules: optional(undefined, s.list(s.any()), 'Not supported.'),
});

const configSchema = s.message(name('Configuration'), 'Identities of external users.', {
  ...typeMetaFields,
  jwt: optional(undefined, s.list(issuerSchema), 'Issuers of tokens.'),
  anonymous: optional(
    undefined,
    s.message(name('Anonymous'), 'Requests without credentials.', {
      enabled: optional(undefined, s.bool(), 'Whether they are served.'),
      conditions: optional(
        undefined,
        s.list(s.message(name('Condition'), 'A path.', { path: optional(undefined, text, 'Path.') })),
        'The paths that are served; empty: all.',
      ),
    }),
    'Requests without credentials.',
  ),
});

type MappingFields = Infer<typeof prefixedSchema>;
type IssuerFields = Infer<typeof issuerSchema>;

/** Throws errors with the file and the field. */
type Fail = (where: string, problem: string) => never;

/** The claim of an expression `claims.NAME`, the only form of CEL that is evaluated. */
function claimOfExpression(fail: Fail, expression: string, where: string): string {
  const [, plain, quoted] = /^claims(?:\.([A-Za-z_]\w*)|\[["']([^"'\\]+)["']\])$/.exec(expression.trim()) ?? [];
  return plain ?? quoted ?? fail(where, 'CEL expressions are not supported, except claims.NAME; use claim');
}

/** The problem of the address of an issuer, or undefined. */
export function issuerProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:') return 'must be an https URL';
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password';
  return url.search !== '' || url.hash !== '' ? 'must not contain a query or fragment' : undefined;
}

function required(fail: Fail, value: string | undefined, where: string): string {
  return value || fail(where, 'is required');
}

function readMapping(fail: Fail, fields: MappingFields | undefined, where: string): ClaimMapping | undefined {
  const { claim, prefix, expression } = fields ?? {};
  if (claim && expression) return fail(where, 'claim and expression exclude each other');
  if (expression) return { claim: claimOfExpression(fail, expression, `${where}.expression`), prefix: '' };
  if (!claim) return undefined;
  return { claim, prefix: prefix ?? fail(`${where}.prefix`, 'is required with claim; "" is no prefix') };
}

function readMappings(fail: Fail, fields: IssuerFields['claimMappings'], where: string) {
  const { username, groups, uid, extra } = fields ?? {};
  const user = readMapping(fail, username, `${where}.username`) ?? fail(`${where}.username.claim`, 'is required');
  const group = readMapping(fail, groups, `${where}.groups`);
  const idClaim = uid?.expression
    ? claimOfExpression(fail, uid.expression, `${where}.uid.expression`)
    : (uid?.claim ?? '');
  const extras = (extra ?? []).map(({ key, valueExpression }, at) => {
    const place = `${where}.extra[${at}]`;
    const attribute = required(fail, key, `${place}.key`);
    if (!/^[a-z0-9.-]+\/[a-z0-9._/-]+$/.test(attribute) || /(?:^|\.)(?:k8s|kubernetes)\.io\//.test(attribute))
      fail(`${place}.key`, 'must be lower-case with a domain of its own, e.g. example.com/team');
    const expression = required(fail, valueExpression, `${place}.valueExpression`);
    return { key: attribute, claim: claimOfExpression(fail, expression, `${place}.valueExpression`) };
  });
  return {
    username: user,
    ...(group === undefined ? {} : { groups: group }),
    ...(idClaim === '' ? {} : { uid: idClaim }),
    ...(extras.length === 0 ? {} : { extra: extras }),
  };
}

function readIssuer(fail: Fail, fields: IssuerFields, where: string): JwtIssuer {
  const at = `${where}.issuer`;
  const {
    url: given,
    discoveryURL = '',
    certificateAuthority,
    audiences: wanted,
    audienceMatchPolicy,
  } = fields.issuer ?? {};
  const url = required(fail, given, `${at}.url`);
  const addresses = { url, ...(discoveryURL ? { discoveryURL } : {}) };
  for (const [field, address] of Object.entries(addresses)) {
    const problem = issuerProblem(address);
    if (problem !== undefined) fail(`${at}.${field}`, problem);
  }
  const audiences = (wanted ?? []).map((one, index) => required(fail, one, `${at}.audiences[${index}]`));
  if (audiences.length === 0) fail(`${at}.audiences`, 'at least one audience is required');
  if (audienceMatchPolicy !== 'MatchAny' && (audienceMatchPolicy || audiences.length > 1))
    fail(`${at}.audienceMatchPolicy`, 'must be MatchAny');
  if (certificateAuthority) {
    try {
      parseCertificates(Buffer.from(certificateAuthority));
    } catch {
      fail(`${at}.certificateAuthority`, 'must be certificates in PEM');
    }
  }
  const rules = (fields.claimValidationRules ?? []).map(({ claim, requiredValue = '', expression }, index) => {
    const place = `${where}.claimValidationRules[${index}]`;
    if (expression !== undefined)
      fail(`${place}.expression`, 'CEL expressions are not supported; use claim and requiredValue');
    return [required(fail, claim, `${place}.claim`), requiredValue] as const;
  });
  if (fields.userValidationRules?.length)
    fail(`${where}.userValidationRules`, 'CEL expressions are not supported; use claimValidationRules');
  return {
    url,
    ...(discoveryURL ? { discoveryUrl: discoveryURL } : {}),
    ...(certificateAuthority ? { certificateAuthority } : {}),
    audiences,
    ...readMappings(fail, fields.claimMappings, `${where}.claimMappings`),
    ...(rules.length === 0 ? {} : { requiredClaims: Object.fromEntries(rules) }),
    // As in kube-apiserver, a structured configuration accepts every asymmetric algorithm.
    algorithms: jwtAlgorithms,
  };
}

function readAnonymous(fail: Fail, fields: Infer<typeof configSchema>['anonymous']): AnonymousAccess | undefined {
  if (fields === undefined) return undefined;
  const { enabled, conditions } = fields;
  if (enabled === undefined) return fail('anonymous.enabled', 'must be true or false');
  const paths = (conditions ?? []).map(({ path }, at) => required(fail, path, `anonymous.conditions[${at}].path`));
  if (!enabled && paths.length > 0)
    fail('anonymous.conditions', 'enabled conditions are not allowed when enabled is false');
  return { enabled, ...(paths.length === 0 ? {} : { paths }) };
}

/** Parses an AuthenticationConfiguration of the group apiserver.config.k8s.io. @throws UsageError */
export function parseAuthenticationConfig(content: Buffer, source: string): AuthenticationConfig {
  const fail: Fail = (where, problem) => {
    throw new UsageError(`${source}: ${where}: ${problem}`);
  };
  const type = { apiVersion: versions, kind: 'AuthenticationConfiguration', schema: configSchema };
  const { jwt = [], anonymous } = parseConfig(content, type, source);
  const issuers = jwt.map((issuer, at) => readIssuer(fail, issuer, `jwt[${at}]`));
  if (issuers.length > maxIssuers) fail('jwt', `at most ${maxIssuers} issuers are allowed`);
  const twice = issuers.find(({ url }, at) => issuers.findIndex((other) => other.url === url) !== at);
  if (twice !== undefined) fail('jwt', `the issuer ${JSON.stringify(twice.url)} occurs twice`);
  return { jwt: issuers, anonymous: readAnonymous(fail, anonymous) };
}
