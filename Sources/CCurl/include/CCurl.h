#ifndef WAYPOST_CCURL_H
#define WAYPOST_CCURL_H

// libcurl's setters and getters are variadic, which Swift does not import: here they are once per argument type.
#include <curl/curl.h>
#include <stdint.h>

CURLcode waypost_curl_set_long(CURL *easy, CURLoption option, long value);
CURLcode waypost_curl_set_offset(CURL *easy, CURLoption option, curl_off_t value);
/// libcurl copies the text, except for CURLOPT_POSTFIELDS.
CURLcode waypost_curl_set_text(CURL *easy, CURLoption option, const char *value);
CURLcode waypost_curl_set_pointer(CURL *easy, CURLoption option, void *value);
/// The list must outlive the transfer.
CURLcode waypost_curl_set_list(CURL *easy, CURLoption option, struct curl_slist *value);
CURLcode waypost_curl_set_data_function(CURL *easy, CURLoption option, curl_write_callback function);
CURLcode waypost_curl_set_debug_function(CURL *easy, curl_debug_callback function);
CURLcode waypost_curl_set_opensocket_function(CURL *easy, curl_opensocket_callback function);
CURLcode waypost_curl_set_closesocket_function(CURL *easy, curl_closesocket_callback function);

CURLcode waypost_curl_get_long(CURL *easy, CURLINFO info, long *value);
/// The text belongs to the handle.
CURLcode waypost_curl_get_text(CURL *easy, CURLINFO info, char **value);
/// The certificate of the server in PEM, with CURLOPT_CERTINFO; it belongs to the handle. NULL = there is none.
const char *waypost_curl_get_certificate(CURL *easy);
CURLcode waypost_curl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value);
CURLcode waypost_curl_get_socket(CURL *easy, CURLINFO info, curl_socket_t *value);

CURLMcode waypost_curl_multi_set_long(CURLM *multi, CURLMoption option, long value);
CURLMcode waypost_curl_multi_set_pointer(CURLM *multi, CURLMoption option, void *value);
CURLMcode waypost_curl_multi_set_socket_function(CURLM *multi, curl_socket_callback function);

/// Bytes of a TCP connection that the peer has not acknowledged, those that were not sent yet included; -1 = not known.
int waypost_tcp_unacknowledged(int fd);
/// Milliseconds since the peer of a TCP connection acknowledged anything; -1 = not known.
int64_t waypost_tcp_silence_ms(int fd);
/// Milliseconds after which the kernel sends what was not acknowledged again; -1 = not known.
int64_t waypost_tcp_retransmission_ms(int fd);
/// Bytes that have come over a TCP connection since it was made; -1 = not known.
int64_t waypost_tcp_received(int fd);
/// TCP_USER_TIMEOUT: the kernel ends the connection when what was sent is not acknowledged for so long.
void waypost_tcp_limit_silence(int fd, unsigned int milliseconds);

CURLSHcode waypost_curl_share_set_data(CURLSH *share, curl_lock_data data);

#endif
