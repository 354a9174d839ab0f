import { didYouMean, parseYaml, UsageError } from '@keelson/core/internal';
import { parseCertificates } from './client-certificates.ts';
import { type ClaimMapping, type JwtIssuer, jwtAlgorithms } from './oidc.ts';

/** Which requests without credentials are served as the anonymous user; all others are answered with 401. */
export interface AnonymousAccess {
  readonly enabled: boolean;
  /** Exact paths; a path that ends with `/*` stands for all paths below it. Absent: all paths. */
  readonly paths?: readonly string[];
}

/** Content of an AuthenticationConfiguration. */
export interface AuthenticationConfig {
  readonly jwt: readonly JwtIssuer[];
  /** Undefined when the file does not configure it. */
  readonly anonymous: AnonymousAccess | undefined;
}

const maxIssuers = 64;
const versions = ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`);

type Fields = Readonly<Record<string, unknown>>;

/** Reads values of the file; errors contain the field. */
class Reader {
  readonly #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  fail(where: string, problem: string): never {
    throw new UsageError(`${this.#source}: ${where}${where === '' ? '' : ': '}${problem}`);
  }

  /** An object with only these fields; an absent one is empty. */
  fields(value: unknown, where: string, known: readonly string[]): Fields {
    if (value === undefined || value === null) return {};
    if (typeof value !== 'object' || Array.isArray(value)) return this.fail(where, 'must be an object');
    const unknown = Object.keys(value).find((key) => !known.includes(key));
    if (unknown !== undefined) return this.fail(where, `unknown field ${unknown}${didYouMean(unknown, known)}`);
    return value as Fields;
  }

  list(value: unknown, where: string): readonly unknown[] {
    if (value === undefined || value === null) return [];
    return Array.isArray(value) ? value : this.fail(where, 'must be a list');
  }

  /** A string; an absent one is empty. */
  text(value: unknown, where: string): string {
    if (value === undefined || value === null) return '';
    return typeof value === 'string' ? value : this.fail(where, 'must be a string');
  }

  required(value: unknown, where: string): string {
    const text = this.text(value, where);
    return text === '' ? this.fail(where, 'is required') : text;
  }
}

/** The claim of an expression `claims.NAME`, the only form of CEL that is evaluated. */
function claimOfExpression(reader: Reader, expression: string, where: string): string {
  const [, plain, quoted] = /^claims(?:\.([A-Za-z_]\w*)|\[["']([^"'\\]+)["']\])$/.exec(expression.trim()) ?? [];
  return plain ?? quoted ?? reader.fail(where, 'CEL expressions are not supported, except claims.NAME; use claim');
}

/** The problem of the address of an issuer, or undefined. */
export function issuerProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:') return 'must be an https URL';
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password';
  return url.search !== '' || url.hash !== '' ? 'must not contain a query or fragment' : undefined;
}

function readMapping(reader: Reader, value: unknown, where: string): ClaimMapping | undefined {
  const { claim, prefix, expression } = reader.fields(value, where, ['claim', 'prefix', 'expression']);
  const [name, from] = [reader.text(claim, `${where}.claim`), reader.text(expression, `${where}.expression`)];
  if (name !== '' && from !== '') return reader.fail(where, 'claim and expression exclude each other');
  if (from !== '') return { claim: claimOfExpression(reader, from, `${where}.expression`), prefix: '' };
  if (name === '') return undefined;
  if (typeof prefix !== 'string') return reader.fail(`${where}.prefix`, 'is required with claim; "" is no prefix');
  return { claim: name, prefix };
}

function readMappings(reader: Reader, value: unknown, where: string) {
  const { username, groups, uid, extra } = reader.fields(value, where, ['username', 'groups', 'uid', 'extra']);
  const user = readMapping(reader, username, `${where}.username`);
  if (user === undefined) return reader.fail(`${where}.username.claim`, 'is required');
  const group = readMapping(reader, groups, `${where}.groups`);
  const id = reader.fields(uid, `${where}.uid`, ['claim', 'expression']);
  const idExpression = reader.text(id['expression'], `${where}.uid.expression`);
  const idClaim =
    idExpression === ''
      ? reader.text(id['claim'], `${where}.uid.claim`)
      : claimOfExpression(reader, idExpression, `${where}.uid.expression`);
  const extras = reader.list(extra, `${where}.extra`).map((item, at) => {
    const place = `${where}.extra[${at}]`;
    const { key, valueExpression } = reader.fields(item, place, ['key', 'valueExpression']);
    const name = reader.required(key, `${place}.key`);
    if (!/^[a-z0-9.-]+\/[a-z0-9._/-]+$/.test(name) || /(?:^|\.)(?:k8s|kubernetes)\.io\//.test(name))
      return reader.fail(`${place}.key`, 'must be lower-case with a domain of its own, e.g. example.com/team');
    const expression = reader.required(valueExpression, `${place}.valueExpression`);
    return { key: name, claim: claimOfExpression(reader, expression, `${place}.valueExpression`) };
  });
  return {
    username: user,
    ...(group === undefined ? {} : { groups: group }),
    ...(idClaim === '' ? {} : { uid: idClaim }),
    ...(extras.length === 0 ? {} : { extra: extras }),
  };
}

function readIssuer(reader: Reader, value: unknown, where: string): JwtIssuer {
  const sections = ['issuer', 'claimValidationRules', 'claimMappings', 'userValidationRules'];
  const { issuer, claimValidationRules, claimMappings, userValidationRules } = reader.fields(value, where, sections);
  const at = `${where}.issuer`;
  const known = ['url', 'discoveryURL', 'certificateAuthority', 'audiences', 'audienceMatchPolicy'];
  const given = reader.fields(issuer, at, known);
  const url = reader.required(given['url'], `${at}.url`);
  const discoveryUrl = reader.text(given['discoveryURL'], `${at}.discoveryURL`);
  for (const [address, field] of [
    [url, 'url'],
    [discoveryUrl, 'discoveryURL'],
  ] as const) {
    const problem = address === '' ? undefined : issuerProblem(address);
    if (problem !== undefined) reader.fail(`${at}.${field}`, problem);
  }
  const audiences = reader
    .list(given['audiences'], `${at}.audiences`)
    .map((one, index) => reader.required(one, `${at}.audiences[${index}]`));
  if (audiences.length === 0) reader.fail(`${at}.audiences`, 'at least one audience is required');
  const policy = reader.text(given['audienceMatchPolicy'], `${at}.audienceMatchPolicy`);
  if (policy !== 'MatchAny' && (policy !== '' || audiences.length > 1))
    reader.fail(`${at}.audienceMatchPolicy`, 'must be MatchAny');
  const certificateAuthority = reader.text(given['certificateAuthority'], `${at}.certificateAuthority`);
  if (certificateAuthority !== '') {
    try {
      parseCertificates(Buffer.from(certificateAuthority));
    } catch {
      reader.fail(`${at}.certificateAuthority`, 'must be certificates in PEM');
    }
  }
  const rules = reader.list(claimValidationRules, `${where}.claimValidationRules`).map((rule, index) => {
    const place = `${where}.claimValidationRules[${index}]`;
    const fields = reader.fields(rule, place, ['claim', 'requiredValue', 'expression', 'message']);
    if (fields['expression'] !== undefined)
      reader.fail(`${place}.expression`, 'CEL expressions are not supported; use claim and requiredValue');
    const claim = reader.required(fields['claim'], `${place}.claim`);
    return [claim, reader.text(fields['requiredValue'], `${place}.requiredValue`)] as const;
  });
  if (reader.list(userValidationRules, `${where}.userValidationRules`).length > 0)
    reader.fail(`${where}.userValidationRules`, 'CEL expressions are not supported; use claimValidationRules');
  return {
    url,
    ...(discoveryUrl === '' ? {} : { discoveryUrl }),
    ...(certificateAuthority === '' ? {} : { certificateAuthority }),
    audiences,
    ...readMappings(reader, claimMappings, `${where}.claimMappings`),
    ...(rules.length === 0 ? {} : { requiredClaims: Object.fromEntries(rules) }),
    // As in kube-apiserver, a structured configuration accepts every asymmetric algorithm.
    algorithms: jwtAlgorithms,
  };
}

function readAnonymous(reader: Reader, value: unknown): AnonymousAccess | undefined {
  if (value === undefined || value === null) return undefined;
  const { enabled, conditions } = reader.fields(value, 'anonymous', ['enabled', 'conditions']);
  if (typeof enabled !== 'boolean') return reader.fail('anonymous.enabled', 'must be true or false');
  const paths = reader.list(conditions, 'anonymous.conditions').map((condition, at) => {
    const place = `anonymous.conditions[${at}]`;
    return reader.required(reader.fields(condition, place, ['path'])['path'], `${place}.path`);
  });
  if (!enabled && paths.length > 0)
    return reader.fail('anonymous.conditions', 'enabled conditions are not allowed when enabled is false');
  return { enabled, ...(paths.length === 0 ? {} : { paths }) };
}

/** Parses an AuthenticationConfiguration of the group apiserver.config.k8s.io. @throws UsageError */
export function parseAuthenticationConfig(content: Buffer, source: string): AuthenticationConfig {
  const reader = new Reader(source);
  let value: unknown;
  try {
    value = parseYaml(content).value;
  } catch (error) {
    return reader.fail('', `not valid YAML: ${(error as Error).message}`);
  }
  const { apiVersion, kind, jwt, anonymous } = reader.fields(value, '', ['apiVersion', 'kind', 'jwt', 'anonymous']);
  if (kind !== 'AuthenticationConfiguration' || !versions.includes(String(apiVersion)))
    return reader.fail('', `must be an AuthenticationConfiguration of ${versions[0]}`);
  const issuers = reader.list(jwt, 'jwt').map((item, at) => readIssuer(reader, item, `jwt[${at}]`));
  if (issuers.length > maxIssuers) return reader.fail('jwt', `at most ${maxIssuers} issuers are allowed`);
  const twice = issuers.find(({ url }, at) => issuers.findIndex((other) => other.url === url) !== at);
  if (twice !== undefined) return reader.fail('jwt', `the issuer ${JSON.stringify(twice.url)} occurs twice`);
  return { jwt: issuers, anonymous: readAnonymous(reader, anonymous) };
}
