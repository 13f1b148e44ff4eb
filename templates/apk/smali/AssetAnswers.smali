# Answers every request of the page from the app's assets, and nothing else: edgekit.json lists the files that there
# are, with their types, and the headers that each answer has. What it does not list is a 404, another host a 403.
.class public final Ledgekit/webview/AssetAnswers;
.super Landroid/webkit/WebViewClient;
.source "AssetAnswers.smali"

.field private final assets:Landroid/content/res/AssetManager;
.field private final origin:Ljava/lang/String;
.field private final host:Ljava/lang/String;
.field private final files:Lorg/json/JSONObject;
.field private final headers:Ljava/util/Map;

# this.assets = assets;
# InputStream stream = assets.open("edgekit.json");
# JSONObject index = new JSONObject(new Scanner(stream, "UTF-8").useDelimiter("\\A").next());
# host = index.getString("host"); origin = "https://" + host + "/";
# files = index.getJSONObject("files"); headers = copy of index.getJSONObject("headers");
.method public constructor <init>(Landroid/content/res/AssetManager;)V
    .locals 6
    .annotation system Ldalvik/annotation/Throws;
        value = { Ljava/io/IOException;, Lorg/json/JSONException; }
    .end annotation
    invoke-direct {p0}, Landroid/webkit/WebViewClient;-><init>()V
    iput-object p1, p0, Ledgekit/webview/AssetAnswers;->assets:Landroid/content/res/AssetManager;

    const-string v0, "edgekit.json"
    invoke-virtual {p1, v0}, Landroid/content/res/AssetManager;->open(Ljava/lang/String;)Ljava/io/InputStream;
    move-result-object v0
    new-instance v1, Ljava/util/Scanner;
    const-string v2, "UTF-8"
    invoke-direct {v1, v0, v2}, Ljava/util/Scanner;-><init>(Ljava/io/InputStream;Ljava/lang/String;)V
    const-string v2, "\\A"
    invoke-virtual {v1, v2}, Ljava/util/Scanner;->useDelimiter(Ljava/lang/String;)Ljava/util/Scanner;
    invoke-virtual {v1}, Ljava/util/Scanner;->next()Ljava/lang/String;
    move-result-object v2
    invoke-virtual {v1}, Ljava/util/Scanner;->close()V
    new-instance v0, Lorg/json/JSONObject;
    invoke-direct {v0, v2}, Lorg/json/JSONObject;-><init>(Ljava/lang/String;)V

    const-string v1, "host"
    invoke-virtual {v0, v1}, Lorg/json/JSONObject;->getString(Ljava/lang/String;)Ljava/lang/String;
    move-result-object v1
    iput-object v1, p0, Ledgekit/webview/AssetAnswers;->host:Ljava/lang/String;
    const-string v2, "https://"
    invoke-virtual {v2, v1}, Ljava/lang/String;->concat(Ljava/lang/String;)Ljava/lang/String;
    move-result-object v2
    const-string v1, "/"
    invoke-virtual {v2, v1}, Ljava/lang/String;->concat(Ljava/lang/String;)Ljava/lang/String;
    move-result-object v2
    iput-object v2, p0, Ledgekit/webview/AssetAnswers;->origin:Ljava/lang/String;

    const-string v1, "files"
    invoke-virtual {v0, v1}, Lorg/json/JSONObject;->getJSONObject(Ljava/lang/String;)Lorg/json/JSONObject;
    move-result-object v1
    iput-object v1, p0, Ledgekit/webview/AssetAnswers;->files:Lorg/json/JSONObject;

    const-string v1, "headers"
    invoke-virtual {v0, v1}, Lorg/json/JSONObject;->getJSONObject(Ljava/lang/String;)Lorg/json/JSONObject;
    move-result-object v1
    new-instance v2, Ljava/util/HashMap;
    invoke-direct {v2}, Ljava/util/HashMap;-><init>()V
    invoke-virtual {v1}, Lorg/json/JSONObject;->keys()Ljava/util/Iterator;
    move-result-object v3
    :next_header
    invoke-interface {v3}, Ljava/util/Iterator;->hasNext()Z
    move-result v4
    if-eqz v4, :all_headers
    invoke-interface {v3}, Ljava/util/Iterator;->next()Ljava/lang/Object;
    move-result-object v4
    check-cast v4, Ljava/lang/String;
    invoke-virtual {v1, v4}, Lorg/json/JSONObject;->getString(Ljava/lang/String;)Ljava/lang/String;
    move-result-object v5
    invoke-interface {v2, v4, v5}, Ljava/util/Map;->put(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;
    goto :next_header
    :all_headers
    iput-object v2, p0, Ledgekit/webview/AssetAnswers;->headers:Ljava/util/Map;
    return-void
.end method

# return origin;
.method public start()Ljava/lang/String;
    .locals 1
    iget-object v0, p0, Ledgekit/webview/AssetAnswers;->origin:Ljava/lang/String;
    return-object v0
.end method

# Uri url = request.getUrl();
# if (!"https".equals(url.getScheme()) || !host.equals(url.getAuthority())) return refusal(403, "Forbidden");
# if (!"GET".equals(request.getMethod())) return refusal(405, "Method Not Allowed");
# String path = url.getPath().substring(1);            // never null or empty: the URL has a host
# if (path.isEmpty()) path = "index.html";
# JSONObject file = files.optJSONObject(path);
# if (file == null) return refusal(404, "Not Found");
# try { stream = assets.open("bundle/" + path); } catch (IOException e) { return refusal(404, "Not Found"); }
# return new WebResourceResponse(file.optString("type"), file.has("charset") ? file.optString("charset") : null,
#                                200, "OK", headers, stream);
.method public shouldInterceptRequest(Landroid/webkit/WebView;Landroid/webkit/WebResourceRequest;)Landroid/webkit/WebResourceResponse;
    .locals 8
    invoke-interface {p2}, Landroid/webkit/WebResourceRequest;->getUrl()Landroid/net/Uri;
    move-result-object v0
    invoke-direct {p0, v0}, Ledgekit/webview/AssetAnswers;->isOurs(Landroid/net/Uri;)Z
    move-result v1
    if-nez v1, :ours
    const/16 v1, 0x193
    const-string v2, "Forbidden"
    invoke-direct {p0, v1, v2}, Ledgekit/webview/AssetAnswers;->refusal(ILjava/lang/String;)Landroid/webkit/WebResourceResponse;
    move-result-object v0
    return-object v0

    :ours
    const-string v1, "GET"
    invoke-interface {p2}, Landroid/webkit/WebResourceRequest;->getMethod()Ljava/lang/String;
    move-result-object v2
    invoke-virtual {v1, v2}, Ljava/lang/String;->equals(Ljava/lang/Object;)Z
    move-result v1
    if-nez v1, :asks
    const/16 v1, 0x195
    const-string v2, "Method Not Allowed"
    invoke-direct {p0, v1, v2}, Ledgekit/webview/AssetAnswers;->refusal(ILjava/lang/String;)Landroid/webkit/WebResourceResponse;
    move-result-object v0
    return-object v0

    :asks
    invoke-virtual {v0}, Landroid/net/Uri;->getPath()Ljava/lang/String;
    move-result-object v0
    if-eqz v0, :root
    invoke-virtual {v0}, Ljava/lang/String;->length()I
    move-result v1
    const/4 v2, 0x1
    if-le v1, v2, :root
    invoke-virtual {v0, v2}, Ljava/lang/String;->substring(I)Ljava/lang/String;
    move-result-object v0
    goto :look
    :root
    const-string v0, "index.html"

    :look
    iget-object v1, p0, Ledgekit/webview/AssetAnswers;->files:Lorg/json/JSONObject;
    invoke-virtual {v1, v0}, Lorg/json/JSONObject;->optJSONObject(Ljava/lang/String;)Lorg/json/JSONObject;
    move-result-object v7
    if-eqz v7, :missing
    const-string v1, "bundle/"
    invoke-virtual {v1, v0}, Ljava/lang/String;->concat(Ljava/lang/String;)Ljava/lang/String;
    move-result-object v0
    :open
    iget-object v1, p0, Ledgekit/webview/AssetAnswers;->assets:Landroid/content/res/AssetManager;
    invoke-virtual {v1, v0}, Landroid/content/res/AssetManager;->open(Ljava/lang/String;)Ljava/io/InputStream;
    move-result-object v6
    :opened
    .catch Ljava/io/IOException; {:open .. :opened} :not_there

    const-string v0, "type"
    invoke-virtual {v7, v0}, Lorg/json/JSONObject;->optString(Ljava/lang/String;)Ljava/lang/String;
    move-result-object v1
    const/4 v2, 0x0
    const-string v0, "charset"
    invoke-virtual {v7, v0}, Lorg/json/JSONObject;->has(Ljava/lang/String;)Z
    move-result v3
    if-eqz v3, :no_charset
    invoke-virtual {v7, v0}, Lorg/json/JSONObject;->optString(Ljava/lang/String;)Ljava/lang/String;
    move-result-object v2
    :no_charset
    const/16 v3, 0xc8
    const-string v4, "OK"
    iget-object v5, p0, Ledgekit/webview/AssetAnswers;->headers:Ljava/util/Map;
    new-instance v0, Landroid/webkit/WebResourceResponse;
    invoke-direct/range {v0 .. v6}, Landroid/webkit/WebResourceResponse;-><init>(Ljava/lang/String;Ljava/lang/String;ILjava/lang/String;Ljava/util/Map;Ljava/io/InputStream;)V
    return-object v0

    :not_there
    move-exception v0
    :missing
    const/16 v1, 0x194
    const-string v2, "Not Found"
    invoke-direct {p0, v1, v2}, Ledgekit/webview/AssetAnswers;->refusal(ILjava/lang/String;)Landroid/webkit/WebResourceResponse;
    move-result-object v0
    return-object v0
.end method

# return !isOurs(request.getUrl());                    // true: the WebView stays where it is
.method public shouldOverrideUrlLoading(Landroid/webkit/WebView;Landroid/webkit/WebResourceRequest;)Z
    .locals 1
    invoke-interface {p2}, Landroid/webkit/WebResourceRequest;->getUrl()Landroid/net/Uri;
    move-result-object v0
    invoke-direct {p0, v0}, Ledgekit/webview/AssetAnswers;->isOurs(Landroid/net/Uri;)Z
    move-result v0
    xor-int/lit8 v0, v0, 0x1
    return v0
.end method

# return "https".equals(url.getScheme()) && host.equals(url.getAuthority());
.method private isOurs(Landroid/net/Uri;)Z
    .locals 2
    const-string v0, "https"
    invoke-virtual {p1}, Landroid/net/Uri;->getScheme()Ljava/lang/String;
    move-result-object v1
    invoke-virtual {v0, v1}, Ljava/lang/String;->equals(Ljava/lang/Object;)Z
    move-result v0
    if-eqz v0, :no
    iget-object v0, p0, Ledgekit/webview/AssetAnswers;->host:Ljava/lang/String;
    invoke-virtual {p1}, Landroid/net/Uri;->getAuthority()Ljava/lang/String;
    move-result-object v1
    invoke-virtual {v0, v1}, Ljava/lang/String;->equals(Ljava/lang/Object;)Z
    move-result v0
    return v0
    :no
    const/4 v0, 0x0
    return v0
.end method

# return new WebResourceResponse("text/plain", "utf-8", status, reason, headers, new ByteArrayInputStream(new byte[0]));
.method private refusal(ILjava/lang/String;)Landroid/webkit/WebResourceResponse;
    .locals 8
    const/4 v0, 0x0
    new-array v0, v0, [B
    new-instance v6, Ljava/io/ByteArrayInputStream;
    invoke-direct {v6, v0}, Ljava/io/ByteArrayInputStream;-><init>([B)V
    const-string v1, "text/plain"
    const-string v2, "utf-8"
    move v3, p1
    move-object v4, p2
    iget-object v5, p0, Ledgekit/webview/AssetAnswers;->headers:Ljava/util/Map;
    new-instance v0, Landroid/webkit/WebResourceResponse;
    invoke-direct/range {v0 .. v6}, Landroid/webkit/WebResourceResponse;-><init>(Ljava/lang/String;Ljava/lang/String;ILjava/lang/String;Ljava/util/Map;Ljava/io/InputStream;)V
    return-object v0
.end method
