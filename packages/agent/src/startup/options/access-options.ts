import { option } from './option.ts';
import { bool, duration, text } from './scalar-types.ts';

export const accessOptions = [
  option(
    'anonymous-auth',
    bool,
    true,
    'Lets requests without credentials in, as system:anonymous of system:unauthenticated.',
  ),
  option('authentication-token-webhook', bool, false, 'Asks the TokenReview API about bearer tokens.'),
  option('authentication-token-webhook-cache-ttl', duration, 120_000, 'How long answers about tokens are kept.'),
  option('authorization-mode', text, 'AlwaysAllow', 'AlwaysAllow, or Webhook for the SubjectAccessReview API.'),
  option(
    'authorization-webhook-cache-authorized-ttl',
    duration,
    300_000,
    'How long answers that allowed a request are kept.',
  ),
  option(
    'authorization-webhook-cache-unauthorized-ttl',
    duration,
    30_000,
    'How long answers that refused a request are kept.',
  ),
  option(
    'client-ca-file',
    text,
    '',
    "Authorities whose certificates identify a caller, by the certificate's CommonName.",
    {
      shownDefault: 'none',
    },
  ),
] as const;
