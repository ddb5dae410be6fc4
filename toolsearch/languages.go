package toolsearch

import "strings"

// translations has the most frequent words of requests in other languages. Descriptions of tools
// are English, and other requests would only find names of products. The model should translate
// itself, in further phrasings; this is for when it does not.
var translations = func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.SplitSeq(translationLines, "\n") {
		english, others, _ := strings.Cut(line, ":")
		for w := range strings.FieldsSeq(others) {
			m[w] = append(m[w], stem(english))
		}
	}
	return m
}()

// translationLines has a line for each English word, in German, French, Spanish, Portuguese,
// Italian, Dutch, Polish, Russian, Chinese, Japanese and Korean.
//
//nolint:misspell // the words are not English
const translationLines = `create:erstelle erstellen erzeuge erzeugen anlegen lege neu neue neuen neues créer crée créez nouveau nouvelle crear crea nuevo nueva criar crie novo nova creare nuovo nuova maak maken nieuw nieuwe utwórz utworzyć nowy создать создай новый 创建 新建 生成 作成 新規 만들기 생성
add:hinzufügen füge ergänzen ajouter ajoute añadir agregar adicionar adicione aggiungere aggiungi toevoegen dodaj dodać добавить добавь 添加 追加 추가
delete:lösche löschen entfernen entferne supprimer supprime effacer eliminar elimina borrar excluir apagar eliminare cancellare verwijder verwijderen usuń usunąć удалить удали 删除 移除 削除 삭제
update:aktualisieren aktualisiere ändern ändere bearbeiten modifier modifie actualizar actualiza modificar cambiar atualizar alterar aggiornare aggiorna modificare bijwerken wijzig wijzigen zaktualizuj zmień обновить изменить измени 更新 修改 変更 編集 수정 업데이트
list:liste auflisten auflistung lister listar lista elenco elencare lijst wyświetl список 列出 列表 一覧 목록
show:zeige zeigen anzeigen montrer montre afficher affiche mostrar muestra mostre mostrare mostra tonen toon weergeven pokaż показать покажи 显示 查看 表示 보기 보여줘
get:hole holen abrufen obtenir récupérer obtener obtén consultar obter ottenere ottieni ophalen pobierz получить 获取 取得 가져오기
search:suche suchen durchsuchen rechercher recherche chercher cherche buscar busca pesquisar pesquise procurar cercare cerca ricerca zoeken zoek szukaj wyszukaj поиск искать 搜索 查找 検索 검색
find:finde finden trouver trouve encontrar encuentra encontre trovare trova vinden vind znajdź найти найди 找到 探す 찾기
send:sende senden schicke schicken verschicken envoyer envoie enviar envía envie inviare invia spedire versturen stuur verzenden wyślij wysłać отправить отправь 发送 送信 보내기 전송
read:lese lesen lire lis leer lee ler leia leggere leggi lezen lees czytaj przeczytaj читать прочитать прочитай 读取 阅读 読む 읽기
write:schreibe schreiben écrire écris escribir escribe escrever escreva scrivere scrivi schrijven schrijf napisz написать напиши 写入 書く 쓰기
open:öffne öffnen ouvrir ouvre abrir abre aprire apri openen otwórz открыть открой 打开 開く 열기
close:schließen schließe fermer ferme cerrar cierra fechar chiudere chiudi sluiten zamknij закрыть закрой 关闭 閉じる 닫기
start:starte starten démarrer lancer iniciar inicia arrancar avviare avvia uruchom запустить запусти 启动 开始 開始 시작
stop:stoppe stoppen anhalten arrêter arrête detener detén parar fermare ferma arrestare stoppen zatrzymaj остановить останови 停止 중지
rename:umbenennen renommer renomme renombrar renomear rinominare hernoemen переименовать 重命名
move:verschiebe verschieben déplacer déplace mover mueve spostare sposta verplaatsen przenieś переместить 移动 移動 이동
copy:kopiere kopieren copier copie copiar copia copiare kopiëren skopiuj скопировать копировать 复制 コピー 복사
download:herunterladen télécharger descargar descarga baixar scaricare scarica downloaden pobrać скачать 下载 ダウンロード 다운로드
upload:hochladen téléverser subir sube carregar caricare uploaden загрузить 上传 アップロード 업로드
export:exportieren exportiere exporter exportar esportare exporteren eksportuj экспортировать 导出 エクスポート 내보내기
deploy:bereitstellen déployer déploie desplegar implantar distribuire wdróż развернуть 部署 デプロイ 배포
run:ausführen exécuter ejecutar ejecuta executar eseguire esegui uitvoeren wykonaj выполнить выполни 运行 执行 実行 실행
cancel:absagen abbrechen annuler annule annullare annuleren anuluj отменить 取消 キャンセル 취소
file:datei dateien fichier fichiers archivo archivos ficheiro arquivo arquivos bestand bestanden plik pliki файл файлы 文件 ファイル 파일
directory:ordner verzeichnis dossier répertoire carpeta directorio cartella папка папку 目录 文件夹 フォルダ 폴더
document:dokument dokumente documento documentos documenten документ 文档 文書 문서
page:seite seiten página páginas pagina strona страница страницу 页面 网页 ページ 페이지
message:nachricht nachrichten mensaje mensajes mensagem messaggio messaggi bericht wiadomość сообщение сообщения 消息 メッセージ 메시지
email:mail mails courriel correo correos e-mail письмо почта 邮件 メール 이메일
task:aufgabe aufgaben tâche tâches tarea tareas tarefa tarefas compito attività taak zadanie zadania задача задачу задачи 任务 タスク 작업 할일
issue:fehler problem problème problema incidencia probleem błąd проблема 问题 課題 이슈
event:termin termine événement rendez-vous evento eventos cita afspraak wydarzenie событие встреча 日程 事件 予定 이벤트 일정
calendar:kalender calendrier calendario calendário agenda kalendarz календарь 日历 カレンダー 캘린더
user:benutzer nutzer utilisateur utilisateurs usuario usuarios usuário usuários utente utenti gebruiker gebruikers użytkownik пользователь пользователя 用户 ユーザー 사용자
customer:kunde kunden client clients cliente clientes clienti klant klanten klient клиент 客户 顧客 고객
order:bestellung bestellungen commande commandes pedido pedidos encomenda ordine ordini bestelling zamówienie заказ заказы 订单 注文 주문
product:produkt produkte produit produits producto productos produto produtos prodotto prodotti продукт товар 产品 商品 제품
project:projekt projekte projet projets proyecto proyectos projeto progetto проект 项目 プロジェクト 프로젝트
repository:dépôt repositorio repositório deposito репозиторий 仓库 リポジトリ 저장소
branch:zweig branche rama ramo ветка ветку 分支 ブランチ 브랜치
database:datenbank datenbanken bdd données datos dados databank dati baza база 数据库 データベース 데이터베이스
table:tabelle tabellen tabla tabela tabella tabel таблица 表格 テーブル 테이블
chart:diagramm graphique diagramme gráfico grafico wykres диаграмма график 图表 グラフ 차트
screenshot:bildschirmfoto capture captura schermata schermafbeelding скриншот 截图 截屏 スクリーンショット 스크린샷
image:bild bilder images imagen imágenes imagem immagine immagini afbeelding obraz изображение картинка 图片 图像 画像 이미지
card:karte tarjeta cartão scheda kaart карточка карточку 卡片 カード 카드
comment:kommentar commentaire comentario comentário commento opmerking komentarz комментарий 评论 コメント 댓글
channel:kanal canal canale kanaal канал 频道 チャンネル 채널
weather:wetter wettervorhersage météo tiempo clima meteo weer pogoda погода 天气 天気 날씨
forecast:vorhersage prévision pronóstico previsão previsione voorspelling prognoza прогноз 预报 予報 예보
map:karte carte mapa mappa kaart карта 地图 地図 지도
route:strecke route itinéraire ruta rota percorso маршрут 路线 ルート 경로
invoice:rechnung facture factura fatura fattura factuur faktura счет 发票 請求書 송장
payment:zahlung paiement pago pagamento betaling płatność платеж 支付 支払い 결제
report:bericht rapport informe relatório rapporto raport отчет 报告 レポート 보고서
log:protokoll registro logboek журнал 日志 ログ 로그
server:serveur servidor сервер 服务器 サーバー 서버
team:mannschaft équipe equipo equipe squadra zespół команда 团队 チーム 팀
workspace:arbeitsbereich espace espacio werkruimte 工作区 ワークスペース
article:artikel artículo artigo articolo artykuł статья статью 文章 記事 기사
activity:aktivität aktivitäten activité activités actividad actividades atividade atividades activiteit aktywność активность 活动 活動 활동
recent:letzte letzten neueste récent récentes recientes reciente recentes recenti recente ostatnie последние 最近 最新 최근
organization:organisationen organización organizaciones organização organizações organizzazione organizzazioni organisatie organisaties organizacja организация организации 组织 組織 조직
group:gruppe gruppen groupe groupes grupo grupos gruppo gruppi groep groepen grupa группа группу 群组 グループ 그룹
contact:kontakt kontakte contacto contactos contato contatos contatto contatti contacten контакт контакты 联系人 連絡先 연락처
property:eigenschaft eigenschaften propriété propriétés propiedad propiedades propriedade propriedades proprietà eigenschap eigenschappen właściwość свойство свойства 属性 プロパティ 속성
attachment:anhang anhänge pièce jointe adjunto adjuntos anexo anexos allegato allegati bijlage bijlagen załącznik вложение 附件 添付 첨부
folder:mappe mappen carpetas pasta pastas cartelle
link:verknüpfung verknüpfen lien liens enlace enlaces ligação collegamento koppeling koppelen ссылка 链接 リンク 링크
commit:提交 コミット 커밋 коммит
merge:zusammenführen fusionner fusionar mesclar unire samenvoegen scal слить 合并 マージ 병합
review:überprüfen überprüfung révision examiner revisar revisión revisão revisione beoordelen przegląd проверить 审查 レビュー 검토
milestone:meilenstein meilensteine jalon jalons hito hitos pietra mijlpaal веха 里程碑 マイルストーン
label:etikett etiketten étiquette étiquettes etiqueta etiquetas etichetta etichette etykieta метка 标签 ラベル 라벨
status:zustand statut estado stato статус состояние 状态 状態 상태
member:mitglied mitglieder membre membres miembro miembros membro membros membri leden członek участник участники 成员 メンバー 구성원
version:versionen versión versões versão versione versie wersja версия 版本 バージョン 버전
setting:einstellung einstellungen paramètre paramètres réglages ajuste ajustes configuración configuração impostazioni instelling instellingen ustawienia настройки 设置 設定 설정
password:passwort kennwort contraseña senha parola wachtwoord hasło пароль 密码 パスワード 비밀번호
permission:berechtigung berechtigungen rechte autorisation permiso permisos permissão permissões permesso permessi toestemming rechten uprawnienia права 权限 権限 권한
domain:domäne domaine domaines dominio dominios domínio domínios domein domeinen домен 域名 ドメイン 도메인
backup:sicherung sicherungen sauvegarde sauvegardes copia respaldo cópia reservekopie резервная 备份 バックアップ 백업
certificate:zertifikat zertifikate certificat certificado certificato certificaat certyfikat сертификат 证书 証明書 인증서
price:preis preise prix precio precios preço preços prezzo prezzi prijs prijzen cena цена 价格 価格 가격
meeting:besprechung treffen réunion réunions reunión reuniones reunião reuniões riunione riunioni vergadering spotkanie встреча 会议 会議 회의
channel:kanäle канал каналы
query:abfrage abfragen requête requêtes consulta consultas interrogazione zapytanie запрос 查询 クエリ 쿼리
count:zähle zählen anzahl compter nombre contar cantidad número contare aantal tellen liczba количество 数量 数 개수
explain:erkläre erklären expliquer explicar spiegare uitleggen wyjaśnij объяснить 解释 説明 설명`
