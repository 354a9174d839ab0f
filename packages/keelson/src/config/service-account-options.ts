import { isIP } from 'node:net';
import { bool, duration, listOf, requiredText, type ValueType, valueType, wrongValue } from '@keelson/core/internal';
import { type Declared, path } from './option-types.ts';

/** The options about service accounts; all but the address have the names of kube-apiserver. */
export interface ServiceAccountServerOptions {
  /** Private key that signs tokens. Undefined: `service-account.key` of the data directory, created if missing. */
  readonly serviceAccountSigningKeyFile?: string;
  /** Keys that verify tokens beside the signing key. */
  readonly serviceAccountKeyFiles: readonly string[];
  /** The issuer of tokens, then further accepted ones. Empty: the default issuer. */
  readonly serviceAccountIssuers: readonly string[];
  readonly serviceAccountJwksUri?: string;
  /** Audiences of the server. Empty: the issuers. */
  readonly apiAudiences: readonly string[];
  /** Maximum lifetime of a token in milliseconds. Undefined: no limit. */
  readonly serviceAccountMaxTokenExpiration?: number;
  readonly serviceAccountExtendTokenExpiration: boolean;
  /** Address of this server for pods. Undefined: that of --listen. */
  readonly advertiseAddress?: string;
}

const hourMs = 3_600_000;
const mostMs = 2 ** 32 * 1000;

function httpsUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' && url.search === '' && url.hash === '') return text;
  throw wrongValue(source, 'an https URL without a query and a fragment', text);
}

/** As in kube-apiserver, an issuer that contains a colon is a URL. The discovery document requires https. */
const issuers: ValueType<readonly string[]> = listOf('ISSUER', (raw, source) => {
  const issuer = requiredText(raw, source);
  if (issuer.includes(':') && !URL.canParse(issuer)) throw wrongValue(source, 'a name or a URL', issuer);
  return issuer;
});

const maxExpiration: ValueType<number> = {
  ...duration,
  parse: (text, source) => checkedExpiration(duration.parse(text, source), source),
  fromFile: (raw, source, directory) => checkedExpiration(duration.fromFile(raw, source, directory), source),
};

function checkedExpiration(ms: number, source: string): number {
  if (ms >= hourMs && ms <= mostMs) return ms;
  throw wrongValue(source, 'a duration from 1h to 2^32 seconds', duration.format(ms));
}

export const serviceAccountOptions: {
  readonly [K in keyof ServiceAccountServerOptions]-?: Declared<ServiceAccountServerOptions[K] | undefined>;
} = {
  serviceAccountSigningKeyFile: {
    flag: '--service-account-signing-key-file',
    variable: 'KEELSON_SERVICE_ACCOUNT_SIGNING_KEY_FILE',
    type: path('FILE'),
    default: undefined,
    shownDefault: 'service-account.key under --data, created if missing',
    help: 'private key (PEM, RSA or EC) that signs tokens of service accounts; servers of one store need the same key',
  },
  serviceAccountKeyFiles: {
    flag: '--service-account-key-file',
    variable: 'KEELSON_SERVICE_ACCOUNT_KEY_FILES',
    type: listOf('FILE', (raw, source, directory) => path('FILE').fromFile(raw, source, directory ?? '.')),
    default: [],
    help: 'keys (PEM) whose tokens are accepted beside those of the signing key, such as an earlier signing key',
  },
  serviceAccountIssuers: {
    flag: '--service-account-issuer',
    variable: 'KEELSON_SERVICE_ACCOUNT_ISSUERS',
    type: issuers,
    default: [],
    shownDefault: 'https://kubernetes.default.svc.cluster.local',
    help: 'issuer of tokens of service accounts; tokens of the second and further issuers are accepted, not issued',
  },
  serviceAccountJwksUri: {
    flag: '--service-account-jwks-uri',
    variable: 'KEELSON_SERVICE_ACCOUNT_JWKS_URI',
    type: valueType('URL', (raw, source) => httpsUrl(requiredText(raw, source), source)),
    default: undefined,
    shownDefault: '/openid/v1/jwks of this server',
    help: 'address of the public keys in /.well-known/openid-configuration',
  },
  apiAudiences: {
    flag: '--api-audiences',
    variable: 'KEELSON_API_AUDIENCES',
    type: listOf('AUDIENCE', requiredText),
    default: [],
    shownDefault: 'the issuers',
    help: 'audiences of this server; a token of a service account must contain one of them',
  },
  serviceAccountMaxTokenExpiration: {
    flag: '--service-account-max-token-expiration',
    variable: 'KEELSON_SERVICE_ACCOUNT_MAX_TOKEN_EXPIRATION',
    type: maxExpiration,
    default: undefined,
    help: 'greatest validity of a token of a service account, at least 1h; longer requests are shortened',
  },
  serviceAccountExtendTokenExpiration: {
    flag: '--service-account-extend-token-expiration',
    variable: 'KEELSON_SERVICE_ACCOUNT_EXTEND_TOKEN_EXPIRATION',
    type: bool,
    default: false,
    help: 'issue the default tokens of pods for a year, for clients that never read the renewed token',
  },
  advertiseAddress: {
    flag: '--advertise-address',
    variable: 'KEELSON_ADVERTISE_ADDRESS',
    type: valueType('IP', (raw, source) => {
      const address = requiredText(raw, source);
      if (isIP(address) === 0 || address === '0.0.0.0' || address === '::')
        throw wrongValue(source, 'an IP address at which pods reach this server', address);
      return address;
    }),
    default: undefined,
    shownDefault: 'that of --listen',
    help: 'address of the server in the service "kubernetes", which pods use; the port is that of --listen',
  },
};
