/* SPDX-License-Identifier: MIT */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tls {
    SSL_CTX *context;
    SSL *ssl;
    bool shaken, broken;
};

/* ---- errors ---------------------------------------------------------------------------------------------- */

/* Returns OpenSSL's own reason for the latest failure. */
static const char *reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "unknown error";
}

/* Returns the option that would help, for a certificate that was refused. */
static const char *advice(long verified)
{
    switch (verified) {
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return " (--cacert names the file of its authority)";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return " (it is not for the host of the URL)";
    default:
        return "";
    }
}

static int fail_in_protocol(const struct tls *tls, char error[LINK_ERROR])
{
    unsigned long code = ERR_peek_error();
    long verified = SSL_get_verify_result(tls->ssl);
    bool of_tls = ERR_GET_LIB(code) == ERR_LIB_SSL;
    if (!tls->shaken && verified != X509_V_OK)
        snprintf(error, LINK_ERROR, "the server's certificate is refused: %s%s",
                 X509_verify_cert_error_string(verified), advice(verified));
    else if (of_tls && !tls->shaken && ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        snprintf(error, LINK_ERROR, "the server has no TLS at this port: use redis:// (wrong version number)");
    else if (of_tls && ERR_GET_REASON(code) == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
        snprintf(error, LINK_ERROR, "the server wants a certificate of ours: --cert and --key name one");
    else
        snprintf(error, LINK_ERROR, "TLS: %s", reason());
    return TLS_FAILED;
}

/* Turns the result of a function of OpenSSL that has moved no byte into one of ours. */
static int fail(struct tls *tls, int result, int number, short *wants, char error[LINK_ERROR])
{
    int why = SSL_get_error(tls->ssl, result);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
        *wants = why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return TLS_WAITS;
    }
    tls->broken = true;
    if (why == SSL_ERROR_SSL)
        return fail_in_protocol(tls, error);
    if (why == SSL_ERROR_ZERO_RETURN || number == 0 || number == ECONNRESET || number == EPIPE)
        return TLS_CLOSED;
    snprintf(error, LINK_ERROR, "%s", strerror(number));
    return TLS_FAILED;
}

/* ---- certificates ---------------------------------------------------------------------------------------- */

static bool fail_with_file(const char *option, const char *file, char error[LINK_ERROR])
{
    const char *why = access(file, R_OK) == 0 ? reason() : strerror(errno);
    snprintf(error, LINK_ERROR, "%s %.200s: %s", option, file, why);
    return false;
}

/* Without this function OpenSSL would ask for the passphrase of a key at the terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *data)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)data;
    return -1;
}

static bool load_files(SSL_CTX *context, const struct link_target *target, char error[LINK_ERROR])
{
    if (target->cacert == NULL)
        SSL_CTX_set_default_verify_paths(context); /* if there are none, no certificate will be accepted */
    else if (SSL_CTX_load_verify_locations(context, target->cacert, NULL) != 1)
        return fail_with_file("--cacert", target->cacert, error);
    if (target->cert != NULL && SSL_CTX_use_certificate_chain_file(context, target->cert) != 1)
        return fail_with_file("--cert", target->cert, error);
    if (target->key != NULL && (SSL_CTX_use_PrivateKey_file(context, target->key, SSL_FILETYPE_PEM) != 1 ||
                                SSL_CTX_check_private_key(context) != 1))
        return fail_with_file("--key", target->key, error);
    return true;
}

static void set_rules(SSL_CTX *context)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF /* a server that is killed says no goodbye; replies carry their own sizes */
    SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
}

/* The certificate must be for this host. */
static bool expect_host(SSL *ssl, const char *host)
{
    struct in6_addr address;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct tls *tls_new(const struct link_target *target, const char *host, char error[LINK_ERROR])
{
    struct tls *tls = calloc(1, sizeof *tls);
    snprintf(error, LINK_ERROR, "no memory");
    if (tls == NULL)
        return NULL;
    ERR_clear_error();
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context != NULL) {
        set_rules(tls->context);
        if (load_files(tls->context, target, error))
            tls->ssl = SSL_new(tls->context);
    }
    if (tls->ssl != NULL && expect_host(tls->ssl, host))
        return tls;
    tls_free(tls);
    return NULL;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    ERR_clear_error();
    if (tls->shaken && !tls->broken)
        SSL_shutdown(tls->ssl);
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    free(tls);
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

int tls_shake(struct tls *tls, int fd, short *wants, char error[LINK_ERROR])
{
    ERR_clear_error();
    if (SSL_get_fd(tls->ssl) != fd && SSL_set_fd(tls->ssl, fd) != 1) {
        snprintf(error, LINK_ERROR, "no memory");
        return TLS_FAILED;
    }
    errno = 0;
    int result = SSL_connect(tls->ssl);
    if (result != 1)
        return fail(tls, result, errno, wants, error);
    tls->shaken = true;
    return 1;
}

int tls_read(struct tls *tls, void *bytes, int size, short *wants, char error[LINK_ERROR])
{
    ERR_clear_error();
    errno = 0;
    int result = SSL_read(tls->ssl, bytes, size);
    return result > 0 ? result : fail(tls, result, errno, wants, error);
}

int tls_write(struct tls *tls, const void *bytes, int size, short *wants, char error[LINK_ERROR])
{
    ERR_clear_error();
    errno = 0;
    int result = SSL_write(tls->ssl, bytes, size);
    return result > 0 ? result : fail(tls, result, errno, wants, error);
}
