import { type AuthenticationOptions, issuerProblem, type JwtIssuer, jwtAlgorithms } from '@keelson/access';
import { bool, duration, listOf, type Option, oneOf, text, textType, UsageError } from '@keelson/core/internal';
import { path } from './option-types.ts';

/** The options of `keelson serve` about the identities of users; the names are those of kube-apiserver. */
export interface AuthenticationFlags {
  /** File of bearer tokens and their users. Undefined: no such token is valid. */
  readonly tokenAuthFile?: string;
  readonly clientCaFile?: string;
  readonly clientCrlFile?: string;
  readonly anonymousAuth?: boolean;
  readonly authenticationConfig?: string;
  readonly oidcIssuerUrl?: string;
  readonly oidcClientId?: string;
  readonly oidcUsernameClaim?: string;
  readonly oidcUsernamePrefix?: string;
  readonly oidcGroupsClaim?: string;
  readonly oidcGroupsPrefix?: string;
  readonly oidcRequiredClaim?: readonly (readonly [claim: string, value: string])[];
  readonly oidcCaFile?: string;
  readonly oidcSigningAlgs?: readonly string[];
  readonly authenticationTokenWebhookConfigFile?: string;
  readonly authenticationKubeconfig?: string;
  readonly authenticationTokenWebhookVersion?: 'v1' | 'v1beta1';
  readonly authenticationTokenWebhookCacheTtl?: number;
  readonly requestheaderClientCaFile?: string;
  readonly requestheaderAllowedNames?: readonly string[];
  readonly requestheaderUsernameHeaders?: readonly string[];
  readonly requestheaderUidHeaders?: readonly string[];
  readonly requestheaderGroupHeaders?: readonly string[];
  readonly requestheaderExtraHeadersPrefix?: readonly string[];
}

type Row<T> = Omit<Option<string, T | undefined>, 'name' | 'field'>;

const issuerUrl = textType('URL', (given, source) => {
  const problem = issuerProblem(given);
  if (problem !== undefined) throw new UsageError(`${source} ${problem}: ${JSON.stringify(given)}`);
  return given;
});

const claims = listOf<readonly [string, string]>('CLAIM=VALUE', (given, source) => {
  const at = given.indexOf('=');
  if (at < 1) throw new UsageError(`${source} must be CLAIM=VALUE, not ${JSON.stringify(given)}`);
  return [given.slice(0, at).trim(), given.slice(at + 1).trim()];
});

const headers = listOf('HEADER', (given, source) => {
  if (/^[!#$%&'*+.^_`|~\w-]+$/.test(given)) return given;
  throw new UsageError(`${source} must be the name of a header, not ${JSON.stringify(given)}`);
});

const algorithms = listOf('ALGORITHM', (given, source) => {
  if ((jwtAlgorithms as readonly string[]).includes(given)) return given;
  throw new UsageError(
    `${source}: unsupported value ${JSON.stringify(given)}; use some of ${jwtAlgorithms.join(', ')}`,
  );
});

const names = listOf('NAME', (given) => given);

/** Rows of the option table about authentication. */
export const authenticationRows: {
  readonly [K in keyof AuthenticationFlags]-?: Row<AuthenticationFlags[K]>;
} = {
  tokenAuthFile: {
    flag: '--token-auth-file',
    variable: 'KEELSON_TOKEN_AUTH_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'accepted bearer tokens, one `token,user,uid,"group1,group2"` per line; read again when the file changes',
  },
  clientCaFile: {
    flag: '--client-ca-file',
    variable: 'KEELSON_CLIENT_CA_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'authorities of client certificates (PEM), in addition to the one of the data directory; read again when changed',
  },
  clientCrlFile: {
    flag: '--client-crl-file',
    variable: 'KEELSON_CLIENT_CRL_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'revocation lists of client certificates (PEM or DER); read again when the file changes',
  },
  anonymousAuth: {
    flag: '--anonymous-auth',
    variable: 'KEELSON_ANONYMOUS_AUTH',
    type: bool,
    default: undefined,
    shownDefault: 'paths of health and version only',
    help: 'serve requests without credentials as system:anonymous on every path (true) or on none (false)',
  },
  authenticationConfig: {
    flag: '--authentication-config',
    variable: 'KEELSON_AUTHENTICATION_CONFIG',
    type: path('FILE'),
    default: undefined,
    help: 'AuthenticationConfiguration (apiserver.config.k8s.io/v1) with issuers of tokens and anonymous access',
  },
  oidcIssuerUrl: {
    flag: '--oidc-issuer-url',
    variable: 'KEELSON_OIDC_ISSUER_URL',
    type: issuerUrl,
    default: undefined,
    help: 'https address of the OpenID Connect issuer whose tokens are accepted; requires --oidc-client-id',
  },
  oidcClientId: {
    flag: '--oidc-client-id',
    variable: 'KEELSON_OIDC_CLIENT_ID',
    type: text,
    default: undefined,
    help: 'audience of tokens of the OpenID Connect issuer',
  },
  oidcUsernameClaim: {
    flag: '--oidc-username-claim',
    variable: 'KEELSON_OIDC_USERNAME_CLAIM',
    type: text,
    default: undefined,
    shownDefault: 'sub',
    help: 'claim with the user name',
  },
  oidcUsernamePrefix: {
    flag: '--oidc-username-prefix',
    variable: 'KEELSON_OIDC_USERNAME_PREFIX',
    type: text,
    default: undefined,
    shownDefault: 'none for the claim email, otherwise the issuer and #',
    help: 'prefix of user names; - for none',
  },
  oidcGroupsClaim: {
    flag: '--oidc-groups-claim',
    variable: 'KEELSON_OIDC_GROUPS_CLAIM',
    type: text,
    default: undefined,
    help: 'claim with the groups, a text or a list',
  },
  oidcGroupsPrefix: {
    flag: '--oidc-groups-prefix',
    variable: 'KEELSON_OIDC_GROUPS_PREFIX',
    type: text,
    default: undefined,
    help: 'prefix of groups',
  },
  oidcRequiredClaim: {
    flag: '--oidc-required-claim',
    variable: 'KEELSON_OIDC_REQUIRED_CLAIM',
    type: claims,
    default: undefined,
    help: 'claim that tokens must have with this value; may be repeated',
  },
  oidcCaFile: {
    flag: '--oidc-ca-file',
    variable: 'KEELSON_OIDC_CA_FILE',
    type: path('FILE'),
    default: undefined,
    shownDefault: 'authorities of the platform',
    help: 'authorities of the certificate of the OpenID Connect issuer (PEM)',
  },
  oidcSigningAlgs: {
    flag: '--oidc-signing-algs',
    variable: 'KEELSON_OIDC_SIGNING_ALGS',
    type: algorithms,
    default: undefined,
    shownDefault: 'RS256',
    help: `accepted algorithms of signatures: ${jwtAlgorithms.join(', ')}`,
  },
  authenticationTokenWebhookConfigFile: {
    flag: '--authentication-token-webhook-config-file',
    variable: 'KEELSON_AUTHENTICATION_TOKEN_WEBHOOK_CONFIG_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'kubeconfig of a server that reviews bearer tokens',
  },
  authenticationKubeconfig: {
    flag: '--authentication-kubeconfig',
    variable: 'KEELSON_AUTHENTICATION_KUBECONFIG',
    type: path('FILE'),
    default: undefined,
    help: 'kubeconfig of a cluster that this server extends: it reviews bearer tokens, and its front proxy states users',
  },
  authenticationTokenWebhookVersion: {
    flag: '--authentication-token-webhook-version',
    variable: 'KEELSON_AUTHENTICATION_TOKEN_WEBHOOK_VERSION',
    type: oneOf('VERSION', ['v1', 'v1beta1']),
    default: undefined,
    shownDefault: 'v1',
    help: 'version of the TokenReview that is sent to the webhook',
  },
  authenticationTokenWebhookCacheTtl: {
    flag: '--authentication-token-webhook-cache-ttl',
    variable: 'KEELSON_AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL',
    type: duration,
    default: undefined,
    shownDefault: '2m',
    help: 'time for which answers of the token webhook are cached',
  },
  requestheaderClientCaFile: {
    flag: '--requestheader-client-ca-file',
    variable: 'KEELSON_REQUESTHEADER_CLIENT_CA_FILE',
    type: path('FILE'),
    default: undefined,
    help: 'authorities of the client certificates of front proxies, which state users in headers (PEM)',
  },
  requestheaderAllowedNames: {
    flag: '--requestheader-allowed-names',
    variable: 'KEELSON_REQUESTHEADER_ALLOWED_NAMES',
    type: names,
    default: undefined,
    help: 'common names of front proxies; without it, every certificate of the authorities is one of a front proxy',
  },
  requestheaderUsernameHeaders: {
    flag: '--requestheader-username-headers',
    variable: 'KEELSON_REQUESTHEADER_USERNAME_HEADERS',
    type: headers,
    default: undefined,
    shownDefault: 'X-Remote-User',
    help: 'headers in which front proxies state the user name',
  },
  requestheaderUidHeaders: {
    flag: '--requestheader-uid-headers',
    variable: 'KEELSON_REQUESTHEADER_UID_HEADERS',
    type: headers,
    default: undefined,
    help: 'headers in which front proxies state the uid, e.g. X-Remote-Uid',
  },
  requestheaderGroupHeaders: {
    flag: '--requestheader-group-headers',
    variable: 'KEELSON_REQUESTHEADER_GROUP_HEADERS',
    type: headers,
    default: undefined,
    shownDefault: 'X-Remote-Group',
    help: 'headers in which front proxies state groups',
  },
  requestheaderExtraHeadersPrefix: {
    flag: '--requestheader-extra-headers-prefix',
    variable: 'KEELSON_REQUESTHEADER_EXTRA_HEADERS_PREFIX',
    type: headers,
    default: undefined,
    shownDefault: 'X-Remote-Extra-',
    help: 'prefixes of headers in which front proxies state extra fields',
  },
};

/** The flags of the options that are given. */
function given(options: AuthenticationFlags, beginning: string): string[] {
  return Object.entries(authenticationRows)
    .filter(([key, { flag }]) => flag?.startsWith(beginning) && options[key as keyof AuthenticationFlags] !== undefined)
    .map(([, { flag = '' }]) => flag);
}

/** @throws UsageError for options that contradict or require each other */
export function checkAuthentication(options: AuthenticationFlags & { readonly insecure: boolean }): void {
  const { insecure, authenticationConfig, oidcIssuerUrl, oidcClientId, requestheaderClientCaFile } = options;
  const oidc = given(options, '--oidc-');
  const proxy = given(options, '--requestheader-');
  const webhook = given(options, '--authentication-token-webhook-');
  const any = [...given(options, '--token-'), ...given(options, '--client-'), ...given(options, '--anonymous-')];
  const all = [...any, ...given(options, '--authentication-'), ...oidc, ...proxy];
  if (insecure && all[0] !== undefined) {
    const why = all[0] === '--token-auth-file' ? 'tokens are not read' : 'users are not identified';
    throw new UsageError(`--insecure and ${all[0]} exclude each other: ${why} without authentication`);
  }
  if (authenticationConfig !== undefined && oidc[0] !== undefined)
    throw new UsageError(`--authentication-config and ${oidc[0]} exclude each other; move the issuer to the file`);
  if (oidc.length > 0 && (oidcIssuerUrl === undefined || oidcClientId === undefined))
    throw new UsageError(`${oidc[0]} requires --oidc-issuer-url and --oidc-client-id`);
  if (options.oidcGroupsPrefix !== undefined && options.oidcGroupsClaim === undefined)
    throw new UsageError('--oidc-groups-prefix requires --oidc-groups-claim');
  if (proxy.length > 0 && requestheaderClientCaFile === undefined)
    throw new UsageError(
      `${proxy[0]} requires --requestheader-client-ca-file: without it every client could claim to be any user`,
    );
  const { authenticationTokenWebhookConfigFile: webhookFile, authenticationKubeconfig: cluster } = options;
  if (webhookFile !== undefined && cluster !== undefined)
    throw new UsageError(
      '--authentication-token-webhook-config-file and --authentication-kubeconfig exclude each other',
    );
  if (webhook.length > 0 && webhookFile === undefined && cluster === undefined)
    throw new UsageError(`${webhook[0]} requires --authentication-token-webhook-config-file`);
}

function singleIssuer(flags: AuthenticationFlags, certificateAuthority: string | undefined): JwtIssuer[] {
  const { oidcIssuerUrl: url, oidcClientId, oidcUsernameClaim = 'sub', oidcUsernamePrefix, oidcGroupsClaim } = flags;
  if (url === undefined || oidcClientId === undefined) return [];
  const ownPrefix = oidcUsernameClaim === 'email' ? '' : `${url}#`;
  const prefix = oidcUsernamePrefix === '-' ? '' : oidcUsernamePrefix || ownPrefix;
  return [
    {
      url,
      audiences: [oidcClientId],
      username: { claim: oidcUsernameClaim, prefix },
      ...(oidcGroupsClaim ? { groups: { claim: oidcGroupsClaim, prefix: flags.oidcGroupsPrefix ?? '' } } : {}),
      ...(flags.oidcRequiredClaim ? { requiredClaims: Object.fromEntries(flags.oidcRequiredClaim) } : {}),
      ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
      ...(flags.oidcSigningAlgs ? { algorithms: flags.oidcSigningAlgs } : {}),
    },
  ];
}

/** @param oidcAuthority content of `oidcCaFile` */
export function authenticationOptions(
  flags: AuthenticationFlags,
  oidcAuthority: string | undefined,
): AuthenticationOptions {
  const { tokenAuthFile, clientCaFile, clientCrlFile, anonymousAuth, authenticationConfig } = flags;
  const { authenticationKubeconfig, requestheaderClientCaFile: authorityFile } = flags;
  const configFile = authenticationKubeconfig ?? flags.authenticationTokenWebhookConfigFile;
  const { authenticationTokenWebhookVersion: version, authenticationTokenWebhookCacheTtl: cacheMs } = flags;
  const jwt = singleIssuer(flags, oidcAuthority);
  return {
    ...(tokenAuthFile === undefined ? {} : { tokenFile: tokenAuthFile }),
    ...(jwt.length === 0 ? {} : { jwt }),
    ...(authenticationConfig === undefined ? {} : { configFile: authenticationConfig }),
    ...(clientCaFile === undefined ? {} : { clientAuthorityFile: clientCaFile }),
    ...(clientCrlFile === undefined ? {} : { revocationFile: clientCrlFile }),
    ...(anonymousAuth === undefined ? {} : { anonymous: { enabled: anonymousAuth } }),
    ...(configFile === undefined
      ? {}
      : {
          webhook: {
            configFile,
            cluster: authenticationKubeconfig !== undefined,
            ...(version === undefined ? {} : { version }),
            ...(cacheMs === undefined ? {} : { cacheMs }),
          },
        }),
    ...(authorityFile === undefined
      ? {}
      : {
          requestHeaders: {
            authorityFile,
            allowedNames: flags.requestheaderAllowedNames ?? [],
            username: flags.requestheaderUsernameHeaders ?? ['X-Remote-User'],
            uid: flags.requestheaderUidHeaders ?? [],
            groups: flags.requestheaderGroupHeaders ?? ['X-Remote-Group'],
            extraPrefixes: flags.requestheaderExtraHeadersPrefix ?? ['X-Remote-Extra-'],
          },
        }),
  };
}
